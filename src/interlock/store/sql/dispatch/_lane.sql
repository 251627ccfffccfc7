-- Each (group, train) that has a ready entry, with the first of them: the walk probes the index once per lane, however many
-- entries wait in it.
(
    select group_id, train, priority, created_at, id
    from /*schema*/work_queue
    where state = 'queued'
      and ready
    order by group_id, train, priority desc, created_at, id
    limit 1
)
union all
select following.*
from lane
cross join lateral (
    select w.group_id, w.train, w.priority, w.created_at, w.id
    from /*schema*/work_queue w
    where w.state = 'queued'
      and w.ready
      and (w.group_id, w.train) > (lane.group_id, lane.train)
    order by w.group_id, w.train, w.priority desc, w.created_at, w.id
    limit 1
) following
