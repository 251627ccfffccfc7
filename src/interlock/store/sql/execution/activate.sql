-- The child is held. One that is switched off, or queued or active already, is left as it is.
with child as materialized (
    select m.*
    from /*schema*/manifest m
    where m.id = :child_id
), busy as (
    select not child.enabled or exists (
        select from /*schema*/work_queue w
        where w.manifest_id = child.id and w.state = 'queued' and w.kind <> 'manual'
    ) or exists (
        select from /*schema*/execution e
        where e.manifest_id = child.id and e.ended_at is null and e.kind <> 'manual'
    ) as busy
    from child
), queued as (
    insert into /*schema*/work_queue (
        kind, train, input, manifest_id, fire_key, attempt, max_attempts, max_crashes, retry_delay, max_retry_delay,
        retry_backoff, timeout, group_id, group_priority, priority, scheduled_at, ready, caused_by_execution_id
    )
    select 'dormant', child.train, coalesce(:input::jsonb, child.input), child.id, :caused_by::bigint::text, 1,
        coalesce(child.max_attempts, :max_attempts), :max_crashes, coalesce(child.retry_delay, :retry_delay),
        coalesce(child.max_retry_delay, :max_retry_delay), coalesce(child.retry_backoff, :retry_backoff),
        coalesce(child.timeout, :timeout::interval), child.group_id, g.priority,
        least(coalesce(child.priority, :priority::smallint, g.priority + :boost::smallint), 63),
        coalesce(:now::timestamptz, clock_timestamp()), true, :caused_by::bigint
    from child
    join busy on not busy.busy and child.train = coalesce(:train, child.train)
    join /*schema*/manifest_group g on g.id = child.group_id
    returning id
)
select child.id as manifest_id, child.train, (select id from queued) as entry_id
from child
