select m.external_id, m.enabled, m.train, g.name as "group", parent.external_id as parent, m.schedule_kind,
    m.schedule::text as schedule, m.time_zone, m.exclusions::text as exclusions, m.planned_at, m.planned_offset,
    coalesce(:now::timestamptz, statement_timestamp()) as now
from /*schema*/manifest m
join /*schema*/manifest_group g on g.id = m.group_id
left join /*schema*/manifest parent on parent.id = m.parent_id
where (:external_id::text is null or m.external_id = :external_id::text)
  and (:group::text is null or g.name = :group::text)
order by m.external_id
