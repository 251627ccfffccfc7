-- Topics are walked one by one, each with a share of the batch, so a topic with a long backlog or a closed road hides no
-- other. What a claim finds beyond delivery is decided in the same statement: a message past its expiry, one that took
-- down too many workers, one that the receiver may have forgotten. Only the proof counts in the last case but one: a
-- message whose next crash would be the last is claimed by the isolated lane alone. A batch expires in one moment, so
-- what one crash left behind is found together and charged alike.
with recursive topics as (
    /*include:outbox/_topics*/
), served as materialized (
    select t.topic, p.crash_limit, p.idempotency_window
    from topics t
    cross join lateral (
        select greatest(x.crash_limit, 2) as crash_limit, x.idempotency_window, x.has_room
        from unnest(:patterns::text[], :crash_limits::integer[], :windows::interval[], :rooms::boolean[])
            with ordinality as x (pattern, crash_limit, idempotency_window, has_room, place)
        where t.topic ~ x.pattern
        order by x.place
        limit 1
    ) p
    where p.has_room
      and (:topics::text[] is null or t.topic ~ any(:topics::text[]))
), roads as materialized (
    select s.*
    from (
        /*include:outbox/_roads*/
    ) s
    -- Not `exists`, which may be planned as one walk over all topics at once.
    where (
        select true
        from /*schema*/outbox o
        where o.state = 'pending'
          and o.topic = s.topic
          and o.available_at <= coalesce(:now::timestamptz, statement_timestamp())
        limit 1
    )
      and s.is_clear
), share as materialized (
    select greatest(ceil(:limit::integer::float8 / greatest(count(*), 1)), least(:limit::integer, :least_share::integer))::integer as most
    from roads
), found as materialized (
    select m.*, r.topic, r.probe, row_number() over (partition by r.topic order by m.available_at, m.id) as turn,
        /*include:outbox/_verdict*/
    from roads r
    cross join share
    cross join lateral (
        select o.id, o.available_at, o.expires_at, o.crashes, o.claims, o.first_emitted_at,
            o.claim_token is not null as crashed
        from /*schema*/outbox o
        where o.state = 'pending'
          and o.topic = r.topic
          and o.available_at <= coalesce(:now::timestamptz, statement_timestamp())
          and (:partitions::text[] is null or o.partition = any(:partitions::text[]))
          and (o.crashes + (o.claim_token is not null)::integer + 1 = r.crash_limit) = :isolated::boolean
        order by o.available_at, o.id
        limit share.most
        for update skip locked
    ) m
), chosen as materialized (
    select *
    from found
    where not probe
       or verdict <> 'pending'
       or id = any(array(select distinct on (topic) id from found where probe and verdict = 'pending' order by topic, turn))
    order by turn, id
    limit :limit::integer
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
    good_until - coalesce(:now::timestamptz, clock_timestamp()) as good_for
from claimed
order by id
