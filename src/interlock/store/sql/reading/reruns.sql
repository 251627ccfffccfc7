-- What was started anew from these executions or their dead letters, with the latest execution of each.
with started as materialized (
    select a.id, a.action, a.actor, a.at, (a.after ->> 'entry_id')::bigint as entry_id
    from /*schema*/audit a
    where (a.action = 'rerun' and a.target_kind = 'execution' and a.target = any(:executions::text[]))
       or (a.action = 'requeue' and a.target_kind = 'dead_letter' and a.target = any(:dead_letters::text[]))
)
select s.action, s.actor, s.at, s.entry_id, latest.id as execution_id, latest.state
from started s
left join lateral (
    select e.id, e.state
    from /*schema*/execution e
    where e.first_entry_id = s.entry_id
    order by e.id desc
    limit 1
) latest on true
order by s.id
