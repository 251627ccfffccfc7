-- After a broken connection nobody knows whether the write arrived. The row does.
select held.id, e.state, e.failure
from unnest(:ids::bigint[], :tokens::uuid[]) as held (id, token)
join /*schema*/execution e on e.id = held.id and e.claim_token = held.token
