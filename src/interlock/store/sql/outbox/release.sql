-- What was not emitted goes back as if it had not been claimed.
update /*schema*/outbox o
set claim_token = null,
    claims = o.claims - 1,
    first_emitted_at = case when o.claims = 1 then null else o.first_emitted_at end,
    available_at = coalesce(:now::timestamptz, clock_timestamp()) + :delay::interval
from unnest(:ids::bigint[], :tokens::uuid[]) as g (id, token)
where o.id = g.id
  and o.claim_token = g.token
  and o.id = any(:ids::bigint[])
returning o.id
