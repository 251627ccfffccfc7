-- Those that wait for a person and fit; whoever resolves them checks their state again.
select d.id
from /*schema*/dead_letter d
left join /*schema*/manifest_group g on g.id = d.group_id
where d.state = 'awaiting_intervention'
  and d.id > :after::bigint
  and (:ids::bigint[] is null or d.id = any(:ids::bigint[]))
  and (:train::text is null or d.train = :train::text)
  and (:manifest::text is null or d.external_id = :manifest::text)
  and (:group::text is null or g.name = :group::text)
  and (:failure::text is null or d.failure = :failure::text)
order by d.id
limit :limit::integer
