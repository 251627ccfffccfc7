-- Orders of one train that differ in their input alone, and have no key: nothing to be sorted, nothing to conflict with, and
-- one array to be sent and one to come back. The rest is as in the statement for orders of any kind.
with terms as materialized (
    select t.*, g.id as group_id, g.priority as group_priority
    from unnest(
        :trains::text[], :groups::text[], :train_priorities::integer[], :max_attempts::integer[],
        :max_crashes::integer[], :retry_delays::interval[], :max_retry_delays::interval[], :retry_backoffs::real[],
        :timeouts::interval[]
    ) as t (
        train, group_name, priority, max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff, timeout
    )
    left join /*schema*/manifest_group g on g.name = t.group_name
), common as materialized (
    select t.*, coalesce(:priority::integer, t.priority, t.group_priority) as entry_priority, moment.now,
        coalesce(:delay::interval, interval '0') as delay
    from terms t
    cross join (select coalesce(:now::timestamptz, clock_timestamp()) as now) moment
    where t.group_id is not null
), written as (
    insert into /*schema*/work_queue (
        kind, train, input, attempt, max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff, timeout,
        group_id, group_priority, priority, created_at, scheduled_at, ready, caused_by_execution_id, trace
    )
    select 'adhoc', c.train, o.input::jsonb, 1, c.max_attempts, c.max_crashes, c.retry_delay, c.max_retry_delay,
        c.retry_backoff, c.timeout, c.group_id, c.group_priority, c.entry_priority, c.now, c.now + c.delay,
        c.delay = interval '0', :caused_by::bigint, :trace::text
    from common c
    cross join unnest(:inputs::text[]) as o (input)
    returning id
)
select (select array_agg(id order by id) from written) as ids,
    (select group_name from terms where group_id is null) as unknown_group,
    (select pg_notify(:channel::text, 'work:')::text where :channel::text is not null and exists (select from common))
        as noticed
