-- The latest entry and the latest execution of the work that began with this entry.
with entry as (
    select w.state, w.failure
    from (
        select id, state, failure from /*schema*/work_queue where id = :id
        union all
        select id, state, failure from /*schema*/work_queue where first_entry_id = :id
    ) w
    order by w.id desc
    limit 1
), attempt as (
    select e.*
    from /*schema*/execution e
    where e.first_entry_id = :id
    order by e.id desc
    limit 1
)
select entry.state as entry_state, entry.failure as entry_failure, attempt.state as execution_state,
    attempt.output::text as output, attempt.failure, attempt.junction, attempt.error_type, attempt.error_message,
    attempt.traceback, dead.id as dead_letter_id, dead.reason as dead_letter_reason
from (select) one
left join entry on true
left join attempt on true
left join lateral (
    select d.id, d.reason
    from /*schema*/dead_letter d
    where d.execution_id = attempt.id
      and d.state = 'awaiting_intervention'
    limit 1
) dead on attempt.state = 'failed'
where entry.state is not null
   or attempt.state is not null
