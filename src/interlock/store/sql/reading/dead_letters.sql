-- The oldest first; by default what waits for a person. A page that does not ask for the total passes a cap of 0.
with matching as not materialized (
    select d.*, g.name as group_name
    from /*schema*/dead_letter d
    left join /*schema*/manifest_group g on g.id = d.group_id
    where (:state::text is null or d.state = :state::text)
      and (:train::text is null or d.train = :train::text)
      and (:manifest::text is null or d.external_id = :manifest::text)
      and (:group::text is null or g.name = :group::text)
      and (:failure::text is null or d.failure = :failure::text)
      and (:executions::bigint[] is null or d.execution_id = any(:executions::bigint[]))
)
select d.id, d.state, d.reason, d.kind, d.train, d.manifest_id, d.external_id, d.first_entry_id, d.execution_id,
    d.group_name as "group", d.attempts, d.crashes, d.failure, d.junction, d.error_type,
    left(d.error_message, 200) as error_message, d.created_at, d.resolved_at, d.resolved_by, d.note, d.requeued_entry_id,
    (select count(*) from (select from matching limit :cap::integer) capped) as total
from matching d
where d.id > :after::bigint
order by d.id
limit :limit::integer
