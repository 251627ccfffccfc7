-- In progress for long, and its server is not among the living. A server that lives may take as long as it likes; its
-- state is read and not its lease, because after an outage all leases look expired.
-- Its entry is locked as well, if it holds a key, because the end of an execution frees that; neither is waited for.
with stale as materialized (
    select e.id, e.entry_id, e.claim_token
    from /*schema*/execution e
    where e.ended_at is null
      and e.state = 'in_progress'
      and e.started_at + :longer_than::interval <= coalesce(:now, statement_timestamp())
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
)
select id, claim_token
from stale
where not exists (
    select from /*schema*/work_queue q
    where q.id = stale.entry_id and q.key_held and q.id not in (select id from entries)
)
