-- The locks of the keys come first, in one order for everybody, and ids are drawn after them: so of two messages of one
-- key the one with the lower id is committed first. A message id that exists already is left as it is.
with message as materialized (
    select m.*
    from unnest(
        :message_ids::text[], :topics::text[], :payloads::text[], :headers::text[], :keys::text[], :partitions::text[],
        :delays::interval[], :expiries::interval[], :traces::text[]
    ) with ordinality as m (message_id, topic, payload, headers, key, partition, delay, expiry, trace, place)
), locked as materialized (
    select pg_advisory_xact_lock(l.number)
    from (
        select distinct hashtextextended('interlock outbox ' || :schema::text || ' ' || key, 0) as number
        from message
        where key is not null
        order by 1
    ) l
), published as (
    insert into /*schema*/outbox (
        message_id, topic, payload, headers, key, bucket, partition, available_at, expires_at, published_at, trace
    )
    select coalesce(m.message_id, gen_random_uuid()::text), m.topic, m.payload::jsonb, m.headers::jsonb, m.key,
        (hashtextextended(m.key, 0) & 1023)::smallint, m.partition,
        t.now + coalesce(m.delay, interval '0'), t.now + m.expiry, t.now, m.trace
    from message m
    cross join (select count(*) from locked) l
    cross join (select coalesce(:now::timestamptz, clock_timestamp()) as now) t
    order by m.place
    on conflict (message_id) do nothing
    returning id, message_id
)
select p.id, p.message_id, n.sent::text as sent
from published p
cross join (select pg_notify(:channel::text, 'outbox:') as sent) n
order by p.id
