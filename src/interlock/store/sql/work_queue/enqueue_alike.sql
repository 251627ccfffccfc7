-- Orders of one train that differ in their input alone, and have no key: nothing to be sorted, nothing to conflict with, and
-- one array to be sent and one to come back. An unknown group leaves nothing to insert and no ids to answer.
with common as materialized (
    select g.id as group_id, g.priority as group_priority,
        coalesce(:priority::integer, :train_priority::integer, g.priority) as entry_priority,
        coalesce(:now::timestamptz, clock_timestamp()) as now, coalesce(:delay::interval, interval '0') as delay
    from /*schema*/manifest_group g
    where g.name = :group::text
), written as (
    insert into /*schema*/work_queue (
        kind, train, input, attempt, max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff, timeout,
        group_id, group_priority, priority, created_at, scheduled_at, ready, caused_by_execution_id, trace
    )
    select 'adhoc', :train::text, o.input::jsonb, 1, :max_attempts::integer, :max_crashes::integer,
        :retry_delay::interval, :max_retry_delay::interval, :retry_backoff::real, :timeout::interval, c.group_id,
        c.group_priority, c.entry_priority, c.now, c.now + c.delay, c.delay = interval '0', :caused_by::bigint,
        :trace::text
    from common c
    cross join unnest(:inputs::text[]) as o (input)
    returning id
)
select (select array_agg(id order by id) from written) as ids,
    (select pg_notify(:channel::text, 'work:')::text where :channel::text is not null and exists (select from common))
        as noticed
