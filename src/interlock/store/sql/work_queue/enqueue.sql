-- The terms are what the orders of one train have in common, so that a batch carries them once. All or nothing: one
-- unknown group and no order is written. A snapshot that outlives the statement cannot tell who holds a key now, so keyed
-- orders are written at read committed alone. Keys are taken in their order, so that two batches cannot deadlock.
with terms as materialized (
    select t.*, g.id as group_id, g.priority as group_priority
    from unnest(
        :trains::text[], :groups::text[], :train_priorities::integer[], :max_attempts::integer[],
        :max_crashes::integer[], :retry_delays::interval[], :max_retry_delays::interval[], :retry_backoffs::real[],
        :timeouts::interval[]
    ) with ordinality as t (
        train, group_name, priority, max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff, timeout,
        number
    )
    left join /*schema*/manifest_group g on g.name = t.group_name
), moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
), written as (
    insert into /*schema*/work_queue (
        kind, train, input, attempt, max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff, timeout,
        group_id, group_priority, priority, created_at, scheduled_at, ready, key, key_held, caused_by_execution_id,
        trace
    )
    select 'adhoc', t.train, o.input::jsonb, 1, t.max_attempts, t.max_crashes, t.retry_delay, t.max_retry_delay,
        t.retry_backoff, t.timeout, t.group_id, t.group_priority, coalesce(o.priority, t.priority, t.group_priority),
        moment.now, moment.now + coalesce(o.delay, interval '0'), coalesce(o.delay, interval '0') = interval '0', o.key,
        o.key is not null, :caused_by::bigint, :trace::text
    from unnest(
        :terms::integer[], :inputs::text[], :priorities::integer[], :delays::interval[], :keys::text[]
    ) with ordinality as o (term, input, priority, delay, key, place)
    join terms t on t.number = o.term
    cross join moment
    where not exists (select from terms where group_id is null)
      and (o.key is null or current_setting('transaction_isolation') = 'read committed')
    order by o.key nulls first, o.place
    on conflict (key) where key_held do nothing
    returning id, key
)
select id, key, null as unknown_group,
    (select pg_notify(:channel::text, 'work:')::text where :channel::text is not null) as noticed
from written
union all
select null, null, group_name, null
from terms
where group_id is null
order by id
