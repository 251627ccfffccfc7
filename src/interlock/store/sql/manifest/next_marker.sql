-- How long until a manifest of an enabled group has to be looked at; the answer is null when none has.
select min(ahead.next_run_at) - coalesce(:now, statement_timestamp())
from /*schema*/manifest_group g
cross join lateral (
    select m.next_run_at
    from /*schema*/manifest m
    where m.group_id = g.id and m.next_run_at > coalesce(:now, statement_timestamp())
    order by m.next_run_at
    limit 1
) ahead
where g.enabled
