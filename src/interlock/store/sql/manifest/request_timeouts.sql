-- All active executions are read: there are as many as the fleet has slots.
with overdue as materialized (
    select e.id
    from /*schema*/execution e
    where e.ended_at is null
      and e.state = 'in_progress'
      and e.cancel_requested_at is null
      and e.started_at + e.timeout <= coalesce(:now, statement_timestamp())
    order by e.id
    for update of e skip locked
)
update /*schema*/execution e
set cancel_requested_at = coalesce(:now, clock_timestamp()), cancel_cause = 'timeout'
from overdue
where e.id = overdue.id
returning
    e.id, e.train, e.attempt, e.timeout,
    (select m.external_id from /*schema*/manifest m where m.id = e.manifest_id) as manifest
