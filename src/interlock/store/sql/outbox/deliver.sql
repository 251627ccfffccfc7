-- Who has a token is pending, so the state is not asked for: with it, a plan made while little was pending walks all that
-- is, to find these few. For the same reason they are looked up by number, here and wherever a token guards.
with delivered as (
    update /*schema*/outbox o
    set state = 'delivered', claim_token = null, record_id = coalesce(g.record_id, o.record_id), failure = null,
        error_message = null, ended_at = coalesce(:now::timestamptz, clock_timestamp())
    from unnest(:ids::bigint[], :tokens::uuid[], :record_ids::text[]) as g (id, token, record_id)
    where o.id = g.id
      and o.claim_token = g.token
      and o.id = any(:ids::bigint[])
    returning o.id, g.token
)
select id, token from delivered
