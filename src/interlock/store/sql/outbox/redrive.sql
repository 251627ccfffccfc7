-- A rate spreads them over time: number n becomes due n / rate seconds from now.
with chosen as materialized (
    select id, key
    from /*schema*/outbox
    where state in ('dead', 'needs_review')
      and (:ids::bigint[] is null or id = any(:ids::bigint[]) or message_id = any(:message_ids::text[]))
      and (:topic::text is null or topic = :topic::text)
      and (:failure::text is null or failure = :failure::text)
    order by id
    limit :limit
    for update skip locked
), placed as materialized (
    select id, key, row_number() over (order by id) - 1 as place from chosen
), overtook as materialized (
    -- One look for all of them: delivered messages have no index by key, because every delivery would pay for it. What
    -- is in hand may be with the receiver by now.
    select key, max(id) as last
    from /*schema*/outbox
    where (state = 'delivered' or claim_token is not null)
      and key = any(array(select key from placed))
      and exists (select from placed where placed.key is not null)
    group by key
), redriven as (
    update /*schema*/outbox o
    set state = 'pending', ended_at = null, attempts = 0, crashes = 0, first_emitted_at = null, failure = null,
        available_at = coalesce(:now::timestamptz, clock_timestamp())
            + make_interval(secs => coalesce(p.place / :rate::float8, 0)),
        out_of_order = o.out_of_order or coalesce(v.last > o.id, false)
    from placed p
    left join overtook v on v.key = p.key
    where o.id = p.id
      and o.state in ('dead', 'needs_review')
    returning o.id, o.topic, o.attempts, o.out_of_order
), noted as (
    insert into /*schema*/outbox_attempt (outbox_id, topic, attempt, outcome, error_type, error_message)
    select id, topic, 0, 'redriven', :actor::text, :note::text from redriven
), woken as (
    select pg_notify(:channel::text, 'outbox:') as sent where exists (select from redriven)
)
select r.id, r.out_of_order, (select sent::text from woken) as sent from redriven r order by r.id
