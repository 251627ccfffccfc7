-- Never claims: a message that is somebody else's by now is missing from the answer.
update /*schema*/outbox o
set available_at = clock_timestamp() + :lease::interval
from unnest(:ids::bigint[], :tokens::uuid[]) as g (id, token)
where o.id = g.id
  and o.claim_token = g.token
  and o.id = any(:ids::bigint[])
returning o.id
