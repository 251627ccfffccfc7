-- Of what a worker believes to hold: whom somebody asked to stop, and what it does not hold any more.
select held.id, e.cancel_cause, e.claim_token is distinct from held.token or e.state <> 'in_progress' as lost
from unnest(:ids::bigint[], :tokens::uuid[]) as held (id, token)
left join /*schema*/execution e on e.id = held.id
where e.id is null
   or e.cancel_requested_at is not null
   or e.claim_token is distinct from held.token
   or e.state <> 'in_progress'
