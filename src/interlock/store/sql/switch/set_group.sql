-- Cap and switches of a group; null leaves one as it is. Answers what it was.
with before as materialized (
    select g.id, g.enabled, g.priority, g.max_active_jobs
    from /*schema*/manifest_group g
    where g.name = :name::text
    for update
)
update /*schema*/manifest_group g
set enabled = coalesce(:enabled::boolean, g.enabled),
    priority = coalesce(:priority::smallint, g.priority),
    max_active_jobs = case when :sets_cap::boolean then :max_active_jobs::integer else g.max_active_jobs end,
    updated_at = clock_timestamp()
from before
where g.id = before.id
returning before.enabled as was_enabled, before.priority as was_priority, before.max_active_jobs as was_max_active_jobs,
    g.enabled, g.priority, g.max_active_jobs
