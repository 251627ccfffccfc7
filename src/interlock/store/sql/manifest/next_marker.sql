-- How long until a manifest has to be looked at; the answer is null when none has. What is blocked counts with its plan:
-- its run may end long before that, and then nobody tells the manager, because nothing is due yet.
select least(marked.at, blocked.at) - coalesce(:now, statement_timestamp())
from (
    select min(ahead.next_run_at) as at
    from /*schema*/manifest_group g
    cross join lateral (
        select m.next_run_at
        from /*schema*/manifest m
        where m.group_id = g.id and m.next_run_at > coalesce(:now, statement_timestamp())
        order by m.next_run_at
        limit 1
    ) ahead
    where g.enabled
) marked
cross join (
    select min(m.planned_at) as at
    from /*schema*/manifest m
    where m.next_run_at is null
      and m.enabled
      and m.planned_at > coalesce(:now, statement_timestamp())
) blocked
