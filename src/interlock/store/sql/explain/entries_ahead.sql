-- How many entries come first. Those that do are the head of each lane, in the order of its index, so no lane is read
-- beyond the limit; of lanes, only those that the same workers could take from now.
with recursive lane as (
    /*include:dispatch/_lane*/
), open as (
    select lane.group_id, lane.train, coalesce(g.priority, 0) as rank
    from lane
    left join /*schema*/manifest_group g on g.id = lane.group_id
    where lane.train = any(:rivals::text[])
      and coalesce(g.enabled, true)
      and not exists (
          select from /*schema*/train t
          where t.paused
            and (t.name in (lane.train, '*') or lane.train = any(t.aliases))
      )
)
select count(*)
from open
cross join lateral (
    select w.priority, w.created_at, w.id
    from /*schema*/work_queue w
    where w.state = 'queued'
      and w.ready
      and w.group_id = open.group_id
      and w.train = open.train
    order by w.priority desc, w.created_at, w.id
    limit :most::integer
) head
where (-open.rank, -head.priority, head.created_at, head.id)
    < (-:rank::integer, -:priority::integer, :created_at::timestamptz, :id::bigint)
