-- Guarded by the state, so that of two who resolve one at once one wins. The policy is the manifest's own of today, else
-- that of the last attempt. Work that blocked nothing (a manual run) still blocks nothing, and an activation stays one, so
-- that each keeps a dead letter of its own.
with chosen as materialized (
    select d.id
    from /*schema*/dead_letter d
    where d.id = any(:ids::bigint[])
      and d.state = 'awaiting_intervention'
    order by d.id
    for update
), resolved as (
    update /*schema*/dead_letter d
    set state = 'retried', resolved_at = coalesce(:now::timestamptz, clock_timestamp()), resolved_by = :actor,
        note = coalesce(:note, d.note)
    from chosen
    where d.id = chosen.id
      and d.state = 'awaiting_intervention'
    returning d.*
)
insert into /*schema*/work_queue (
    kind, train, input, manifest_id, fire_key, attempt, max_attempts, max_crashes, retry_delay, max_retry_delay,
    retry_backoff, timeout, group_id, group_priority, priority, scheduled_at, ready, previous_execution_id,
    dead_letter_id
)
select case when r.kind in ('manual', 'dormant') then r.kind else 'requeue' end, r.train, r.input, r.manifest_id, e.fire_key, 1,
    coalesce(m.max_attempts, e.max_attempts, :max_attempts), coalesce(e.max_crashes, :max_crashes),
    coalesce(m.retry_delay, e.retry_delay, :retry_delay),
    coalesce(m.max_retry_delay, e.max_retry_delay, :max_retry_delay),
    coalesce(m.retry_backoff, e.retry_backoff, :retry_backoff), coalesce(m.timeout, e.timeout, :timeout::interval),
    r.group_id, coalesce(g.priority, 0), r.priority, r.resolved_at, true, r.execution_id, r.id
from resolved r
left join /*schema*/execution e on e.id = r.execution_id
left join /*schema*/manifest m on m.id = r.manifest_id
left join /*schema*/manifest_group g on g.id = r.group_id
order by r.id
returning id as entry_id, dead_letter_id, manifest_id, kind
