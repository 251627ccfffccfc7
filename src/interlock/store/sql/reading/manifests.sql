-- By external id. A page that does not ask for the total passes a cap of 0.
with matching as not materialized (
    select m.*, g.name as group_name, g.enabled as group_enabled
    from /*schema*/manifest m
    join /*schema*/manifest_group g on g.id = m.group_id
    where (:group::text is null or g.name = :group::text)
      and (:train::text is null or m.train = :train::text)
      and (:app::text is null or m.app = :app::text)
      and (:enabled::boolean is null or m.enabled = :enabled::boolean)
      and (:search::text is null or position(lower(:search::text) in lower(m.external_id)) > 0)
)
select m.external_id, m.app, m.origin, m.train, m.group_name as "group", m.group_enabled, m.schedule_kind,
    m.schedule::text as schedule, m.time_zone, parent.external_id as parent, m.enabled, m.planned_at, m.next_run_at,
    m.last_success_at, m.write_error is not null as write_failed,
    exists (select from /*schema*/work_queue q where q.manifest_id = m.id and q.state = 'queued') as queued,
    exists (select from /*schema*/execution e where e.manifest_id = m.id and e.ended_at is null) as active,
    exists (select from /*schema*/dead_letter d
            where d.manifest_id = m.id and d.state = 'awaiting_intervention' and d.kind <> 'manual') as dead_lettered,
    (select count(*) from (select from matching limit :cap::integer) capped) as total
from matching m
left join /*schema*/manifest parent on parent.id = m.parent_id
where m.external_id > :after::text
order by m.external_id
limit :limit::integer
