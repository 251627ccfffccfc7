-- Only the holder of a lane claims its keys, and of a key only what follows without a gap: behind a message that waits,
-- is claimed, or ended without delivery (where its key holds), nothing of the key is taken. Buckets that hold
-- something are walked one by one, so the order by id costs one index probe each.
with recursive topics as (
    /*include:outbox/_topics*/
), filled as (
    (
        select o.bucket::integer
        from /*schema*/outbox o
        where o.state = 'pending' and o.key is not null and o.bucket between :first::smallint and :last::smallint
        order by o.bucket
        limit 1
    )
    union all
    select (
        select o.bucket::integer
        from /*schema*/outbox o
        where o.state = 'pending' and o.key is not null and o.bucket > f.bucket and o.bucket <= :last::smallint
        order by o.bucket
        limit 1
    )
    from filled f
    where f.bucket is not null
), served as materialized (
    select t.topic, p.*
    from topics t
    cross join lateral (
        select greatest(x.crash_limit, 2) as crash_limit, x.idempotency_window, x.holds, x.has_room
        from unnest(:patterns::text[], :crash_limits::integer[], :windows::interval[], :holds::boolean[], :rooms::boolean[])
            with ordinality as x (pattern, crash_limit, idempotency_window, holds, has_room, place)
        where t.topic ~ x.pattern
        order by x.place
        limit 1
    ) p
    where :topics::text[] is null or t.topic ~ any(:topics::text[])
), roads as materialized (
    /*include:outbox/_roads*/
), blocked as materialized (
    -- Looked up by halving, whatever the plan: tens of thousands may wait, and an array is compared one by one.
    select jsonb_object_agg(key, null) as keys from unnest(:blocked_keys::text[]) key
), seen as materialized (
    select c.*
    from filled f
    cross join lateral (
        select o.id, o.key, o.topic, o.available_at, o.expires_at, o.crashes, o.claims, o.first_emitted_at,
            o.claim_token is not null as crashed
        from /*schema*/outbox o
        where o.state = 'pending'
          and o.key is not null
          and o.bucket = f.bucket
          and not coalesce(jsonb_exists((select keys from blocked), o.key), false)
          and (:partitions::text[] is null or o.partition = any(:partitions::text[]))
          and o.topic = any(array(select topic from served))
        order by o.id
        limit :depth::integer
    ) c
    where f.bucket = any(:buckets::integer[])
    union all
    select c.*
    from roads r
    cross join lateral (
        select o.id, null, o.topic, o.available_at, o.expires_at, o.crashes, o.claims, o.first_emitted_at,
            o.claim_token is not null as crashed
        from /*schema*/outbox o
        where o.state = 'pending'
          and o.key is null
          and o.topic = r.topic
          and o.available_at <= coalesce(:now::timestamptz, statement_timestamp())
          and (:partitions::text[] is null or o.partition = any(:partitions::text[]))
        order by o.available_at, o.id
        limit case when r.is_clear and r.has_room then :limit::integer else 0 end
        for update skip locked
    ) c
), judged as materialized (
    select m.*, coalesce('key ' || m.key, m.id::text) as chain, r.probe, r.has_room,
        m.available_at <= coalesce(:now::timestamptz, statement_timestamp())
            and r.is_clear
            and r.has_room
            and (not r.holds or (
                -- Asked for in the order of one index, because a plan made while nothing was dead takes any.
                select d.id
                from /*schema*/outbox d
                where d.state in ('dead', 'needs_review')
                  and d.key between m.key and m.key
                  and d.id < m.id
                order by d.key
                limit 1
            ) is null) as free,
        m.crashes + m.crashed::integer + 1 = r.crash_limit as last_chance,
        /*include:outbox/_verdict*/
    from seen m
    join roads r on r.topic = m.topic
), ranked as materialized (
    select j.*,
        bool_and(j.free and (not j.last_chance or :isolated::boolean)) over so_far as open,
        row_number() over so_far as place,
        coalesce(bool_and(j.verdict = 'pending' and not j.probe and not j.last_chance) over before, true) as reached
    from judged j
    window so_far as (partition by j.chain order by j.id),
        before as (partition by j.chain order by j.id rows between unbounded preceding and 1 preceding)
), wanted as materialized (
    select *
    from ranked
    where open and reached and last_chance = :isolated::boolean
      and (
          not probe
          or verdict <> 'pending'
          or id = any(array(
              select min(id)
              from ranked
              where probe and verdict = 'pending' and open and reached and last_chance = :isolated::boolean
              group by topic
          ))
      )
    -- A few of each key at a time: so there are chains enough to deliver side by side, and more to claim meanwhile.
    order by (place - 1) / :stretch::integer, id
    limit case when :isolated::boolean then 1 else :limit::integer end
), locked as materialized (
    select o.id, o.state = 'pending' and o.available_at <= coalesce(:now::timestamptz, statement_timestamp()) as due
    from /*schema*/outbox o
    where o.id = any(array(select id from wanted))
    order by o.id
    for update skip locked
), chosen as materialized (
    select *
    from (
        select w.*, bool_and(w.id in (select id from locked where due)) over (partition by w.chain order by w.id) as whole
        from wanted w
    ) x
    where whole
), probing as (
    /*include:outbox/_probing*/
), picked as materialized (
    select * from chosen where not probe or verdict <> 'pending' or topic in (select topic from probing)
), moment as materialized (
    select clock_timestamp() as at
), claimed as (
    /*include:outbox/_claimed*/
), noted as (
    /*include:outbox/_noted*/
)
select id, message_id, topic, payload::text, headers::text, key, partition, state, claims, attempts, crashes,
    published_at, expires_at, trace, out_of_order, failure, probe, crashed, bucket,
    good_until - coalesce(:now::timestamptz, clock_timestamp()) as good_for, null::interval as blocked_for
from claimed
union all
-- Keys that cannot go on now: remembered by the holder of the lane, so that a long queue behind one of them is skipped.
-- For an instant only where the emitter has no room, because that may change with every delivery.
select distinct on (r.key) null, null, null, null, null, r.key, null, null, null, null, null, null, null, null, null,
    null, null, null, null, null,
    case
        when r.has_room then greatest(r.available_at - coalesce(:now::timestamptz, statement_timestamp()), interval '0')
        else interval '1 millisecond'
    end
from ranked r
where not r.free
  and r.reached
  and r.key is not null
order by id
