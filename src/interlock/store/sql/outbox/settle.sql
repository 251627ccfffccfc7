-- Guarded by the token of the claim; what is not applied says why. A message that fails is due again after its delay.
with given as materialized (
    select *
    from unnest(
        :ids::bigint[], :tokens::uuid[], :outcomes::text[], :record_ids::text[], :failures::text[], :error_types::text[],
        :error_messages::text[], :delays::interval[], :started::interval[], :claims::integer[], :attempts::integer[]
    ) with ordinality
        as g (
            id, token, outcome, record_id, failure, error_type, error_message, delay, started, claims, attempts, place
        )
), moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
), settled as (
    update /*schema*/outbox o
    set state = case when g.outcome in ('retry', 'snooze') then 'pending' else g.outcome end,
        attempts = o.attempts + (g.outcome in ('retry', 'dead'))::integer,
        -- Who ended, however badly, did not take its worker down.
        crashes = case when g.outcome in ('retry', 'snooze') then 0 else o.crashes end,
        available_at = case when g.outcome in ('retry', 'snooze') then moment.now + g.delay else o.available_at end,
        claim_token = null,
        record_id = coalesce(g.record_id, o.record_id),
        failure = case when g.outcome = 'snooze' then o.failure else g.failure end,
        error_message = case when g.outcome = 'snooze' then o.error_message else g.error_message end,
        ended_at = case when g.outcome not in ('retry', 'snooze') then moment.now end
    from given g, moment
    where o.id = g.id
      and o.claim_token = g.token
      and o.id = any(:ids::bigint[])
    returning o.id, g.token, o.attempts, o.available_at
), answers as materialized (
    select g.*, o.topic, coalesce(s.attempts, o.attempts + 1) as attempt,
        case when s.id is not null and g.outcome in ('retry', 'snooze') then s.available_at end as retry_at,
        s.id is not null as written_now,
        case
            when s.id is not null then 'applied'
            when o.id is null then 'missing'
            -- Nobody has claimed it since, and it is as this outcome leaves it: a try whose answer was lost wrote it.
            when o.claim_token is null
                and o.claims = g.claims
                and o.attempts = g.attempts + (g.outcome in ('retry', 'dead'))::integer
                and o.state = case when g.outcome in ('retry', 'snooze') then 'pending' else g.outcome end then 'applied'
            when o.state <> 'pending' then 'terminal'
            else 'stale'
        end as answer
    from given g
    -- By the token too: an old and a new claim of one message may be settled together, and only one of them holds.
    left join settled s on s.id = g.id and s.token = g.token
    left join /*schema*/outbox o on o.id = g.id and o.id = any(:ids::bigint[])
), noted as (
    insert into /*schema*/outbox_attempt (
        outbox_id, topic, attempt, host, started_at, ended_at, outcome, error_type, error_message, record_id, retry_at
    )
    select a.id, a.topic, a.attempt, :host::text, clock_timestamp() - a.started, clock_timestamp(),
        case when a.answer = 'applied' then a.outcome else 'stale' end, a.error_type, a.error_message, a.record_id,
        a.retry_at
    from answers a
    where (a.written_now and a.outcome <> 'delivered')
       or a.answer in ('stale', 'terminal')
)
select answer from answers order by place
