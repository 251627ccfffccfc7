-- The latest first. A page that does not ask for the total passes a cap of 0.
with matching as not materialized (
    select e.id, e.state, e.kind, e.train, e.manifest_id, e.group_id, e.attempt, e.max_attempts, e.entry_id,
        e.first_entry_id, e.host, e.created_at, e.started_at, e.ended_at, e.failure, e.junction, e.junction_index,
        e.junction_total, e.cancel_cause
    from /*schema*/execution e
    where (:state::text is null or e.state = :state::text)
      and (:active::boolean is null or (e.ended_at is null) = :active::boolean)
      and (:train::text is null or e.train = :train::text)
      and (:kind::text is null or e.kind = :kind::text)
      and (:failure::text is null or e.failure = :failure::text)
      and (:lineage::bigint is null or e.first_entry_id = :lineage::bigint)
      and (:group::text is null
           or e.group_id = (select g.id from /*schema*/manifest_group g where g.name = :group::text))
      and (:manifest::text is null
           or e.manifest_id = (select m.id from /*schema*/manifest m where m.external_id = :manifest::text))
)
select e.id, e.state, e.kind, e.train, m.external_id as manifest, g.name as "group", e.attempt, e.max_attempts,
    e.entry_id, e.first_entry_id, e.host, e.created_at, e.started_at, e.ended_at, e.failure, e.junction,
    e.junction_index, e.junction_total, e.cancel_cause,
    (select count(*) from (select from matching limit :cap::integer) capped) as total
from matching e
left join /*schema*/manifest m on m.id = e.manifest_id
left join /*schema*/manifest_group g on g.id = e.group_id
where :before::bigint is null or e.id < :before::bigint
order by e.id desc
limit :limit::integer
