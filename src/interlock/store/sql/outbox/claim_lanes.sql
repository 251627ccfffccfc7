-- Only the holder of a lane claims its keys, and of a key only what follows without a gap: behind a message that waits,
-- is claimed, or ended without delivery (where its key holds), nothing of the key is taken. Buckets are walked one by
-- one, so the order by id costs one index probe each.
with road as materialized (
    select p.pattern, greatest(p.crash_limit, 2) as crash_limit, p.idempotency_window, p.holds, p.has_room, p.place
    from unnest(:patterns::text[], :crash_limits::integer[], :windows::interval[], :holds::boolean[], :rooms::boolean[])
        with ordinality as p (pattern, crash_limit, idempotency_window, holds, has_room, place)
), probing as (
    update /*schema*/outbox_topic b
    set breaker = 'half_open', probe_at = clock_timestamp() + :lease::interval
    from (
        select b.topic
        from /*schema*/outbox_topic b
        where b.breaker <> 'closed'
          and not b.parked
          and b.probe_at <= statement_timestamp()
          and exists (select from road where b.topic ~ road.pattern)
        for update of b skip locked
    ) due
    where b.topic = due.topic
    returning b.topic
), seen as materialized (
    select c.*
    from unnest(:buckets::smallint[]) as b (bucket)
    cross join lateral (
        select o.id, o.key, o.topic, o.available_at, o.expires_at, o.crashes, o.claims, o.first_emitted_at,
            o.claim_token is not null as crashed
        from /*schema*/outbox o
        where o.state = 'pending'
          and o.key is not null
          and o.bucket = b.bucket
          and not o.key = any(:blocked_keys::text[])
          and (:partitions::text[] is null or o.partition = any(:partitions::text[]))
          and exists (select from road where o.topic ~ road.pattern)
        order by o.id
        limit :depth::integer
    ) c
), judged as materialized (
    select s.*, p.topic is not null as probe,
        s.available_at <= coalesce(:now::timestamptz, statement_timestamp())
            and r.has_room
            and (p.topic is not null or not coalesce(b.parked or b.breaker <> 'closed', false))
            and not (r.holds and exists (
                select
                from /*schema*/outbox d
                where d.key = s.key
                  and d.state in ('dead', 'needs_review')
                  and d.id < s.id
            )) as free,
        s.crashes + s.crashed::integer + 1 = r.crash_limit as last_chance,
        case
            when s.expires_at <= coalesce(:now::timestamptz, statement_timestamp()) then 'expired'
            when s.crashed and s.crashes + 1 >= r.crash_limit then 'dead'
            when s.claims > 0 and s.first_emitted_at + r.idempotency_window
                <= coalesce(:now::timestamptz, statement_timestamp()) then 'needs_review'
            else 'pending'
        end as verdict
    from seen s
    cross join lateral (select * from road where s.topic ~ road.pattern order by road.place limit 1) r
    left join probing p on p.topic = s.topic
    left join /*schema*/outbox_topic b on b.topic = s.topic
), ranked as materialized (
    select j.*,
        bool_and(j.free and (not j.last_chance or :isolated::boolean)) over chain as open,
        coalesce(bool_and(j.verdict = 'pending' and not j.probe and not j.last_chance) over before, true) as reached
    from judged j
    window chain as (partition by j.key order by j.id),
        before as (partition by j.key order by j.id rows between unbounded preceding and 1 preceding)
), wanted as materialized (
    select *
    from ranked
    where open and reached and last_chance = :isolated::boolean
    order by id
    limit case when :isolated::boolean then 1 else :limit::integer end
), locked as materialized (
    select o.id
    from /*schema*/outbox o
    where o.id = any(array(select id from wanted))
      and o.state = 'pending'
      and o.available_at <= coalesce(:now::timestamptz, statement_timestamp())
    order by o.id
    for update skip locked
), picked as materialized (
    select *
    from (
        select w.*, bool_and(l.id is not null) over (partition by w.key order by w.id) as whole
        from wanted w
        left join locked l on l.id = w.id
    ) x
    where whole
), claimed as (
    update /*schema*/outbox o
    set state = p.verdict,
        crashes = o.crashes + p.crashed::integer,
        claim_token = case when p.verdict = 'pending' then :token::uuid end,
        claimed_by = :server::uuid,
        claimed_at = clock_timestamp(),
        claims = o.claims + (p.verdict = 'pending')::integer,
        available_at = case when p.verdict = 'pending' then clock_timestamp() + :lease::interval else o.available_at end,
        first_emitted_at = coalesce(o.first_emitted_at, coalesce(:now::timestamptz, clock_timestamp())),
        failure = case p.verdict
            when 'dead' then 'crash_loop' when 'needs_review' then 'window_passed' when 'expired' then 'expired'
            else o.failure end,
        ended_at = case when p.verdict <> 'pending' then coalesce(:now::timestamptz, clock_timestamp()) end
    from picked p
    where o.id = p.id
      and o.state = 'pending'
    returning o.*, p.crashed, p.probe
), noted as (
    insert into /*schema*/outbox_attempt (outbox_id, topic, attempt, host, started_at, outcome, error_message)
    select id, topic, attempts + 1, :host::text, null, outcome, null
    from claimed
    cross join lateral (
        select 'crashed' as outcome where crashed
        union all
        select state where state in ('dead', 'needs_review')
    ) x
)
select id, message_id, topic, payload::text, headers::text, key, partition, state, claims, attempts, crashes,
    published_at, expires_at, trace, out_of_order, failure, probe, crashed, bucket, null::interval as blocked_for
from claimed
union all
-- Keys that cannot go on now: remembered by the holder of the lane, so that a long queue behind one of them is skipped.
select distinct on (r.key) null, null, null, null, null, r.key, null, null, null, null, null, null, null, null, null,
    null, null, null, null,
    greatest(r.available_at - coalesce(:now::timestamptz, statement_timestamp()), interval '0')
from ranked r
where not r.free
  and r.reached
order by id
