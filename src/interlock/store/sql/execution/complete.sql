-- The hot path: work that nobody schedules and no key guards leaves nothing behind but its output.
update /*schema*/execution e
set state = 'completed', ended_at = coalesce(:now::timestamptz, clock_timestamp()), output = outcome.output
from unnest(:ids::bigint[], :tokens::uuid[], :outputs::jsonb[]) as outcome (id, token, output)
where e.id = outcome.id
  and e.claim_token = outcome.token
  and e.state = 'in_progress'
returning e.id
