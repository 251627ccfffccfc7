-- What servers that ended still hold: what they ran, and what they had taken to submit and did not. Active executions
-- are looked at only when a server ended lately. They are found before they are put in order: the order and the limit
-- together would tempt PostgreSQL to walk all history by id.
-- What the end of an execution writes besides is locked as well, its entry if that holds a key and its manifest; none of
-- it is waited for. One row that a paused process holds would keep all the others from running again.
with over as materialized (
    select s.id
    from /*schema*/server s
    where s.state in ('lost', 'gone')
      and s.ended_at > statement_timestamp() - :within::interval
), held as materialized (
    select e.id
    from /*schema*/execution e
    where (select count(*) from over) > 0
      and e.ended_at is null
      and e.server_id in (select id from over)
), found as materialized (
    select e.id, e.entry_id, e.manifest_id, e.claim_token, e.server_id
    from /*schema*/execution e
    where (select count(*) from over) > 0
      and e.id = any(array(select held.id from held))
      and e.state in ('pending', 'in_progress')
    order by e.id
    limit :limit
    for update of e skip locked
), entries as materialized (
    select q.id
    from /*schema*/work_queue q
    where q.id = any(array(select entry_id from found))
      and q.key_held
    order by q.id
    for update skip locked
), manifests as materialized (
    select m.id
    from /*schema*/manifest m
    where m.id = any(array(select manifest_id from found))
    order by m.id
    for no key update skip locked
)
select id, claim_token, server_id
from found
where not exists (
    select from /*schema*/work_queue q
    where q.id = found.entry_id and q.key_held and q.id not in (select id from entries)
)
  and not exists (
    select from /*schema*/manifest m where m.id = found.manifest_id and m.id not in (select id from manifests)
)
order by id
