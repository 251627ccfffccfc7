select d.id, d.state, d.reason, d.kind, d.train, d.manifest_id, d.external_id, d.first_entry_id, d.execution_id, g.name as "group",
    d.attempts, d.crashes, d.failure, d.junction, d.error_type, d.error_message, d.created_at, d.resolved_at, d.resolved_by,
    d.note, d.requeued_entry_id
from /*schema*/dead_letter d
left join /*schema*/manifest_group g on g.id = d.group_id
where d.id = any(:ids::bigint[])
order by d.id
