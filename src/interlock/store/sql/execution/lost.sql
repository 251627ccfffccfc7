-- What servers that ended still hold: what they ran, and what they had taken to submit and did not. Active executions
-- are looked at only when a server ended lately. They are found before they are put in order: the order and the limit
-- together would tempt PostgreSQL to walk all history by id.
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
),
/*include:execution/_lock_what_it_ends*/
select id, claim_token, server_id
from found
where
    /*include:execution/_locked_what_it_ends*/
order by id
