-- Groups with their use of capacity: active executions are as few as the fleet has slots.
select g.name, g.enabled, g.priority, g.max_active_jobs as cap, coalesce(a.active, 0) as active
from /*schema*/manifest_group g
left join (
    select e.group_id, count(*) as active from /*schema*/execution e where e.ended_at is null group by e.group_id
) a on a.group_id = g.id
order by coalesce(a.active, 0) desc, g.name
limit 50
