with delivered as (
    update /*schema*/outbox o
    set state = 'delivered', claim_token = null, record_id = coalesce(g.record_id, o.record_id), failure = null,
        error_message = null, ended_at = coalesce(:now::timestamptz, clock_timestamp())
    from unnest(:ids::bigint[], :tokens::uuid[], :record_ids::text[]) as g (id, token, record_id)
    where o.id = g.id
      and o.state = 'pending'
      and o.claim_token = g.token
    returning o.id
)
select id from delivered
