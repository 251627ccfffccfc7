-- Like the run that it repeats, in its group and with its policy, from the first attempt. A run of a manifest becomes a
-- manual one, which blocks nothing; when the manifest is gone, it is like any other work.
insert into /*schema*/work_queue (
    kind, train, input, manifest_id, attempt, max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff,
    timeout, group_id, group_priority, priority, created_at, scheduled_at, ready, previous_execution_id
)
select case when m.id is null then 'adhoc' else 'manual' end, e.train, coalesce(:input::text::jsonb, e.input), m.id, 1,
    e.max_attempts, e.max_crashes, e.retry_delay, e.max_retry_delay, e.retry_backoff, e.timeout, e.group_id,
    coalesce(g.priority, 0), coalesce(m.priority, :priority::smallint, g.priority, 0), moment.now, moment.now, true, e.id
from /*schema*/execution e
left join /*schema*/manifest m on m.id = e.manifest_id
left join /*schema*/manifest_group g on g.id = e.group_id
cross join (select coalesce(:now::timestamptz, clock_timestamp()) as now) moment
where e.id = :id
  and e.ended_at is not null
returning id
