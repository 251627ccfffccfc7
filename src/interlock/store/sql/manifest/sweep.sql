-- Markers that should be set and are not: nothing blocks the manifest, and either it has a plan or its parent has a
-- success that it did not consume. Every statement sees a consistent state, so in a healthy system there is none.
with blank as materialized (
    select m.id, m.planned_at
    from /*schema*/manifest m
    where m.next_run_at is null and m.planned_at is not null and m.enabled
    union all
    select m.id, coalesce(:now, statement_timestamp())
    from /*schema*/manifest m
    join /*schema*/manifest parent on parent.id = m.parent_id
    join /*schema*/execution e on e.id = parent.last_success_execution_id and e.state = 'completed'
    where m.parent_id is not null
      and m.schedule_kind = 'dependent'
      and m.next_run_at is null
      and m.planned_at is null
      and m.enabled
      and parent.last_success_execution_id is distinct from m.consumed_execution_id
),
stranded as materialized (
    select m.id, blank.planned_at
    from blank
    join /*schema*/manifest m on m.id = blank.id
    where m.next_run_at is null
      and m.enabled
      and not exists (
          select from /*schema*/work_queue q
          where q.manifest_id = m.id and q.state = 'queued' and q.kind <> 'manual'
      )
      and not exists (
          select from /*schema*/execution e
          where e.manifest_id = m.id and e.ended_at is null and e.kind <> 'manual'
      )
      and not exists (
          select from /*schema*/dead_letter d
          where d.manifest_id = m.id and d.state = 'awaiting_intervention' and d.kind <> 'manual'
      )
    order by m.id
    limit :limit
    for no key update of m skip locked
)
update /*schema*/manifest m
set next_run_at = stranded.planned_at, planned_at = stranded.planned_at, updated_at = clock_timestamp()
from stranded
where m.id = stranded.id
returning m.external_id
