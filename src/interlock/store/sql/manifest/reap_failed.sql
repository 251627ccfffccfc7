-- The end of a run writes its dead letter itself; this repairs what is missing, now and not when the manifest is due
-- again. A day of exhausted runs is looked at, and whatever is due with its attempts used up. A count that used them up
-- and was dealt with since, by a success or a person, says nothing about the failures that came after it.
with exhausted as materialized (
    select manifest_id, max(ended_at) as ended_at
    from (
        select e.manifest_id, e.ended_at
        from /*schema*/execution e
        where e.failure is not null
          and e.attempt >= e.max_attempts
          and e.manifest_id is not null
          and e.kind <> 'manual'
          and e.failure not in ('worker_lost', 'submit_failed')
          and e.ended_at > coalesce(:now, statement_timestamp()) - interval '1 day'
        union all
        -- What neither the manifest nor its train says was said when the work was queued, and travels with it.
        select due.id, 'infinity'
        from unnest(:due_ids::bigint[], :failures::bigint[], :max_attempts::integer[]) as due (id, failures, most)
        where due.failures >= coalesce(due.most, (
            select e.max_attempts
            from /*schema*/execution e
            where e.manifest_id = due.id
              and e.failure is not null
              and e.kind <> 'manual'
              and e.failure not in ('worker_lost', 'submit_failed')
            order by e.ended_at desc, e.id desc
            limit 1
        ))
    ) used_up
    group by manifest_id
),
idle as materialized (
    select m.id, m.external_id, m.priority, m.group_id, greatest(m.last_success_at, m.last_resolved_at) as since
    from exhausted
    join /*schema*/manifest m on m.id = exhausted.manifest_id
    where exhausted.ended_at > greatest(m.last_success_at, m.last_resolved_at, '-infinity')
      and not exists (
          select from /*schema*/dead_letter d
          where d.manifest_id = m.id and d.state = 'awaiting_intervention' and d.kind <> 'manual'
      )
      and not exists (
          select from /*schema*/work_queue q
          where q.manifest_id = m.id and q.state = 'queued' and q.kind <> 'manual'
      )
      and not exists (
          select from /*schema*/execution e
          where e.manifest_id = m.id and e.ended_at is null and e.kind <> 'manual'
      )
    order by m.id
    for no key update of m skip locked
),
written as (
    insert into /*schema*/dead_letter (
        reason, kind, train, input, manifest_id, external_id, first_entry_id, execution_id, group_id, priority,
        attempts, crashes, failure, junction, error_type, error_message, created_at
    )
    select
        'max_attempts', last.kind, last.train, last.input, m.id, m.external_id, last.first_entry_id, last.id, m.group_id,
        coalesce(q.priority, m.priority, g.priority),
        last.attempt, last.crashes, last.failure, last.junction, last.error_type, last.error_message,
        coalesce(:now, clock_timestamp())
    from idle m
    join /*schema*/manifest_group g on g.id = m.group_id
    cross join lateral (
        select e.*
        from /*schema*/execution e
        where e.manifest_id = m.id
          and e.failure is not null
          and e.ended_at > coalesce(m.since, '-infinity')
          and e.kind <> 'manual'
          and e.failure not in ('worker_lost', 'submit_failed')
        order by e.ended_at desc, e.id desc
        limit 1
    ) last
    left join /*schema*/work_queue q on q.id = last.entry_id
    on conflict do nothing
    returning id, manifest_id, external_id, execution_id, train, attempts
)
update /*schema*/manifest m
set next_run_at = null, updated_at = clock_timestamp()
from written
where m.id = written.manifest_id
returning
    written.id, written.manifest_id, written.external_id, written.execution_id, written.train, written.attempts
