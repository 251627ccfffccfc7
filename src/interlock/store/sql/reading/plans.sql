-- With what keeps a manifest from being queued whatever its plan says.
with paused as materialized (
    select coalesce(array_agg(known.name), '{}') as trains, coalesce(bool_or(known.name = '*'), false) as everything
    from /*schema*/train t cross join lateral unnest(array_append(t.aliases, t.name)) as known (name)
    where t.paused
)
select m.external_id, m.enabled, m.train, g.name as "group", parent.external_id as parent, m.schedule_kind,
    m.schedule::text as schedule, m.time_zone, m.exclusions::text as exclusions, m.planned_at, m.planned_offset,
    g.enabled as group_enabled, paused.everything or m.train = any(paused.trains) as paused,
    (
        select min(d.id)
        from /*schema*/dead_letter d
        where d.manifest_id = m.id and d.state = 'awaiting_intervention' and d.kind <> 'manual'
    ) as dead_letter_id,
    coalesce(:now::timestamptz, statement_timestamp()) as now
from /*schema*/manifest m
cross join paused
join /*schema*/manifest_group g on g.id = m.group_id
left join /*schema*/manifest parent on parent.id = m.parent_id
where (:external_id::text is null or m.external_id = :external_id::text)
  and (:group::text is null or g.name = :group::text)
order by m.external_id
