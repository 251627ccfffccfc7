-- What waits in the queue carries its group's priority as a sort key.
with wanted as materialized (
    select * from unnest(:ids::bigint[], :priorities::smallint[]) as w (group_id, priority)
), held as materialized (
    select q.id
    from /*schema*/work_queue q
    join wanted w on w.group_id = q.group_id
    where q.state = 'queued' and q.group_priority <> w.priority
    order by q.id
    for update of q
)
update /*schema*/work_queue q
set group_priority = w.priority
from held, wanted w
where q.id = held.id and w.group_id = q.group_id
