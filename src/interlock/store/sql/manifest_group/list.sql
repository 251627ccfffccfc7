select id, name, enabled, priority, max_active_jobs, declared from /*schema*/manifest_group order by name
