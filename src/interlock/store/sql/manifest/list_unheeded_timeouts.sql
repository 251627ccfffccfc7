-- Asked to stop, past the timeout, and still running after the grace. A person's wish to cancel stands, whatever the
-- clock says.
with found as materialized (
    select e.id, e.entry_id, e.manifest_id, e.claim_token, e.cancel_cause
    from /*schema*/execution e
    where e.ended_at is null
      and e.state = 'in_progress'
      and e.cancel_requested_at + :grace::interval <= coalesce(:now, statement_timestamp())
      and e.started_at + e.timeout + :grace::interval <= coalesce(:now, statement_timestamp())
    order by e.id
    for update of e skip locked
),
/*include:execution/_lock_what_it_ends*/
select id, claim_token, cancel_cause
from found
where
    /*include:execution/_locked_what_it_ends*/
