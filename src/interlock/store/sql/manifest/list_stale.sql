-- Handed over and never taken up, or begun long ago by a server that is not among the living. A job that a worker may
-- still claim is a backlog, not stale; what a living server submits or runs is in good hands, however long it takes.
-- Whether a server lives is for the recovery tick to judge, which spares all of them after an outage: so its verdict is
-- read, not the lease.
-- Its entry is locked as well, if it holds a key, and its manifest, because the end of an execution writes to them; none
-- of them is waited for.
with stale as materialized (
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
entries as materialized (
    select q.id
    from /*schema*/work_queue q
    where q.id in (select entry_id from stale) and q.key_held
    order by q.id
    for update skip locked
),
manifests as materialized (
    select m.id
    from /*schema*/manifest m
    where m.id = any(array(select manifest_id from stale))
    order by m.id
    for no key update skip locked
)
select id, claim_token
from stale
where not exists (
    select from /*schema*/work_queue q
    where q.id = stale.entry_id and q.key_held and q.id not in (select id from entries)
)
  and coalesce(
    (select m.id = any(array(select id from manifests)) from /*schema*/manifest m where m.id = stale.manifest_id), true
)
