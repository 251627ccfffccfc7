-- A live server that has not announced what it declares may declare any of them: then nothing is an orphan.
with live as materialized (
    select d.server_id, d.digest, d.external_ids
    from /*schema*/server s
    left join /*schema*/declaration d on d.server_id = s.id
    where s.app = :app and s.state in ('alive', 'draining')
), declared as materialized (
    select distinct unnest(version.external_ids) as external_id
    from (select distinct on (digest) external_ids from live) version
)
select m.id
from /*schema*/manifest m
where m.app = :app
  and m.origin = 'declared'
  and not exists (select from live where live.server_id is null)
  and not exists (select from declared where declared.external_id = m.external_id)
order by m.id
for update of m
