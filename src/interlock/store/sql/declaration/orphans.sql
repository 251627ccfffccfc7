-- A live server that has not announced what it declares may declare any of them: then nothing is an orphan.
-- EXCEPT compares the two lists by hashing or sorting; an anti-join over lists of unknown length is planned as a loop.
with live as materialized (
    select d.server_id, d.digest, d.external_ids
    from /*schema*/server s
    left join /*schema*/declaration d on d.server_id = s.id
    where s.app = :app and s.state in ('alive', 'draining')
), orphan as materialized (
    select m.external_id
    from /*schema*/manifest m
    where m.app = :app and m.origin = 'declared'
    except
    select unnest(version.external_ids)
    from (select distinct on (digest) external_ids from live) version
)
select m.id
from orphan
join /*schema*/manifest m on m.external_id = orphan.external_id
where not exists (select from live where live.server_id is null)
order by m.id
for update of m
