-- The entry lives on for an hour after its dispatch; until then it tells how long the work waited in the queue.
select e.id, e.state, e.kind, e.train, m.external_id as manifest, g.name as "group", e.attempt, e.max_attempts,
    e.entry_id, e.first_entry_id, e.host, e.created_at, e.started_at, e.ended_at, e.failure, e.junction,
    e.junction_index, e.junction_total, e.cancel_cause, e.fire_key, e.crashes, e.timeout, e.retry_delay, e.submitter,
    e.server_id, q.created_at as queued_at, q.scheduled_at, e.cancel_requested_at, e.cancel_actor,
    e.previous_execution_id, q.caused_by_execution_id, e.input::text as input, e.output::text as output, e.error_type,
    e.error_message, e.traceback, e.trace
from /*schema*/execution e
left join /*schema*/manifest m on m.id = e.manifest_id
left join /*schema*/manifest_group g on g.id = e.group_id
left join /*schema*/work_queue q on q.id = e.entry_id
where e.id = :id::bigint
