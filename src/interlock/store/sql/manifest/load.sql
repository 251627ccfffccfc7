-- What is due, without payloads. The cost follows what is due: a group is asked once whether it has anything, and read
-- only as far as its share. Rows that were dealt with leave the index, so no tick steps over what another has queued.
-- A disabled group and a paused train are left out here and keep their markers.
with paused as materialized (
    select coalesce(array_agg(known.name), '{}') as trains, coalesce(bool_or(known.name = '*'), false) as everything
    from /*schema*/train t cross join lateral unnest(array_append(t.aliases, t.name)) as known (name)
    where t.paused
),
waiting as materialized (
    select g.id, g.name, g.priority, g.last_queued_at
    from /*schema*/manifest_group g
    cross join paused
    where g.enabled
      and not paused.everything
      and exists (
          select from /*schema*/manifest m
          where m.group_id = g.id
            and m.next_run_at <= coalesce(:now, statement_timestamp())
            and m.train <> all (paused.trains)
      )
    order by g.last_queued_at nulls first, g.priority desc, g.id
    limit :bound::bigint
),
share as (
    select greatest(:bound::bigint / greatest(count(*), 1), 1) as size
    from waiting
)
select
    m.id,
    m.version,
    m.external_id,
    m.enabled,
    m.train,
    m.group_id,
    g.priority as group_priority,
    g.last_queued_at as group_last_queued_at,
    m.schedule_kind,
    m.schedule,
    m.time_zone,
    m.exclusions,
    m.variance,
    m.misfire,
    m.misfire_threshold,
    m.priority,
    m.max_attempts,
    m.retry_delay,
    m.max_retry_delay,
    m.retry_backoff,
    m.timeout,
    m.planned_at,
    m.planned_offset,
    m.next_run_at,
    m.consumed_execution_id,
    m.write_failures,
    parent.last_success_execution_id as parent_success_id,
    coalesce(:now, statement_timestamp()) as now,
    share.size as share,
    (
        select count(*)
        from /*schema*/execution e
        where e.manifest_id = m.id
          and e.failure is not null
          and e.ended_at > greatest(m.last_success_at, m.last_resolved_at, '-infinity')
          and e.kind <> 'manual'
          and e.failure not in ('worker_lost', 'submit_failed')
    ) as failed_count,
    exists (
        select from /*schema*/dead_letter d
        where d.manifest_id = m.id and d.state = 'awaiting_intervention' and d.kind <> 'manual'
    ) as has_awaiting_dead_letter,
    exists (
        select from /*schema*/work_queue q
        where q.manifest_id = m.id and q.state = 'queued' and q.kind <> 'manual'
    ) as has_queued_work,
    exists (
        select from /*schema*/execution e
        where e.manifest_id = m.id and e.ended_at is null and e.kind <> 'manual'
    ) as has_active_execution,
    exists (
        select from /*schema*/execution e
        where e.id = parent.last_success_execution_id and e.state = 'completed'
    ) as has_successful_execution
from waiting g
cross join share
cross join paused
cross join lateral (
    select due.*, due.xmin::text as version
    from /*schema*/manifest due
    where due.group_id = g.id
      and due.next_run_at <= coalesce(:now, statement_timestamp())
      and due.train <> all (paused.trains)
    order by due.next_run_at
    limit share.size
) m
left join /*schema*/manifest parent on parent.id = m.parent_id
order by g.last_queued_at nulls first, g.priority desc, g.id, m.next_run_at
