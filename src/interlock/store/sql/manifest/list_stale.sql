-- Handed over and never taken up, or begun long ago by a server that is not among the living. A job that a worker may
-- still claim is a backlog, not stale; what a living server submits or runs is in good hands, however long it takes.
-- Whether a server lives is for the recovery tick to judge, which spares all of them after an outage: so its verdict is
-- read, not the lease.
with found as materialized (
    select e.id, e.entry_id, e.manifest_id, e.claim_token
    from /*schema*/execution e
    where e.ended_at is null
      and e.state = :state::text
      and coalesce(e.started_at, e.created_at) + :longer_than::interval <= coalesce(:now, statement_timestamp())
      and not exists (select from /*schema*/background_job b where b.execution_id = e.id)
      and not exists (
          select from /*schema*/server s where s.id = e.server_id and s.state in ('alive', 'draining')
      )
    order by e.id
    for update of e skip locked
),
/*include:execution/_lock_what_it_ends*/
select id, claim_token
from found
where
    /*include:execution/_locked_what_it_ends*/
