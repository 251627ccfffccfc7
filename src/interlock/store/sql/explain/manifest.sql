-- A manifest, its parent, and what may hold it back: each look is a probe of an index, and of its history only the
-- latest runs are read.
select m.id, m.external_id, m.train, m.group_id, m.schedule_kind, m.schedule::text as schedule, m.time_zone,
       m.exclusions::text as exclusions, m.misfire, m.misfire_threshold, m.enabled, m.planned_at, m.planned_offset,
       m.next_run_at, m.consumed_execution_id, m.write_error, m.write_failures, m.write_retry_at, m.created_at,
       m.last_success_at, parent.external_id as parent, parent.enabled as parent_enabled,
       parent.last_success_execution_id as parent_success_id, parent.last_success_at as parent_success_at,
       exists (
           select from /*schema*/execution e
           where e.id = parent.last_success_execution_id and e.state = 'completed'
       ) as parent_success_on_record,
       (
           select min(d.id)
           from /*schema*/dead_letter d
           where d.manifest_id = m.id and d.state = 'awaiting_intervention' and d.kind <> 'manual'
       ) as dead_letter_id,
       (
           select min(q.id)
           from /*schema*/work_queue q
           where q.manifest_id = m.id and q.state = 'queued' and q.kind <> 'manual'
       ) as entry_id,
       (
           select min(e.id)
           from /*schema*/execution e
           where e.manifest_id = m.id and e.ended_at is null and e.kind <> 'manual'
       ) as execution_id,
       (
           select max(lately.fire_key)
           from (
               select e.kind, e.fire_key
               from /*schema*/execution e
               where e.manifest_id = m.id
               order by e.manifest_id desc, e.id desc
               limit 20
           ) lately
           where lately.kind = 'scheduled'
       ) as last_fire_key
from /*schema*/manifest m
left join /*schema*/manifest parent on parent.id = m.parent_id
where m.id = coalesce(
    :id::bigint, (select named.id from /*schema*/manifest named where named.external_id = :external_id::text)
)
