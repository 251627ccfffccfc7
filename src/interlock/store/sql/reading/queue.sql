-- The oldest first; by default what waits. A page that does not ask for the total passes a cap of 0.
with matching as not materialized (
    select q.*, g.name as group_name, m.external_id
    from /*schema*/work_queue q
    left join /*schema*/manifest_group g on g.id = q.group_id
    left join /*schema*/manifest m on m.id = q.manifest_id
    where (:state::text is null or q.state = :state::text)
      and (:train::text is null or q.train = :train::text)
      and (:group::text is null or g.name = :group::text)
      and (:manifest::text is null or m.external_id = :manifest::text)
      and (:kind::text is null or q.kind = :kind::text)
      and (:lineage::bigint is null or q.id = :lineage::bigint or q.first_entry_id = :lineage::bigint)
)
select q.id, q.state, q.kind, q.train, q.external_id as manifest, q.group_name as "group", q.attempt, q.max_attempts,
    q.priority, q.group_priority, q.created_at, q.scheduled_at, q.ready, q.key, q.execution_id, q.left_at, q.failure,
    (select count(*) from (select from matching limit :cap::integer) capped) as total
from matching q
where q.id > :after::bigint
order by q.id
limit :limit::integer
