-- A manual run touches neither the plan nor the marker, and nothing blocks it.
insert into /*schema*/work_queue (
    kind, train, input, manifest_id, attempt, max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff,
    timeout, group_id, group_priority, priority, created_at, scheduled_at, ready
)
select 'manual', m.train, m.input, m.id, 1, coalesce(m.max_attempts, :max_attempts), :max_crashes,
    coalesce(m.retry_delay, :retry_delay), coalesce(m.max_retry_delay, :max_retry_delay),
    coalesce(m.retry_backoff, :retry_backoff), coalesce(m.timeout, :timeout::interval), m.group_id, g.priority,
    coalesce(m.priority, :priority::smallint, g.priority), moment.now, moment.now + :delay::interval,
    :delay::interval <= interval '0'
from /*schema*/manifest m
join /*schema*/manifest_group g on g.id = m.group_id
cross join (select coalesce(:now::timestamptz, clock_timestamp()) as now) moment
where m.external_id = :external_id
returning id
