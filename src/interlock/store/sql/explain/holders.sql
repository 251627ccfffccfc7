-- The longest active executions of a group.
select e.id, e.train, e.state, coalesce(e.host, s.name) as server, e.started_at, m.external_id
from (
    select * from /*schema*/execution where ended_at is null and group_id = :group_id::bigint limit :most::integer
) e
left join /*schema*/manifest m on m.id = e.manifest_id
left join /*schema*/server s on s.id = e.server_id
order by e.id
limit :limit::integer
