select q.id, q.state, q.kind, q.train, m.external_id as manifest, g.name as "group", q.attempt, q.max_attempts, q.priority,
    q.group_priority, q.created_at, q.scheduled_at, q.ready, q.key, q.execution_id, q.left_at, q.failure,
    coalesce(q.first_entry_id, q.id) as first_entry_id, q.previous_execution_id, q.caused_by_execution_id,
    q.dead_letter_id, q.crashes, q.timeout, q.input::text as input
from /*schema*/work_queue q
left join /*schema*/manifest_group g on g.id = q.group_id
left join /*schema*/manifest m on m.id = q.manifest_id
where q.id = :id::bigint
