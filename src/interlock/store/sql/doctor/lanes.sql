-- What waits, by group and train: one probe per lane, counted up to the limit.
with recursive lane as (
    /*include:dispatch/_lane*/
)
select coalesce(g.name, '?') as group_name, lane.train, waiting.count as waiting,
       coalesce(:now::timestamptz, statement_timestamp()) - head.scheduled_at as oldest
from lane
left join /*schema*/manifest_group g on g.id = lane.group_id
cross join lateral (
    select count(*) as count
    from (
        select from /*schema*/work_queue w
        where w.state = 'queued' and w.ready and w.group_id = lane.group_id and w.train = lane.train
        order by w.priority desc, w.created_at, w.id
        limit :most::integer
    ) counted
) waiting
cross join lateral (
    select w.scheduled_at
    from /*schema*/work_queue w
    where w.state = 'queued' and w.ready and w.group_id = lane.group_id and w.train = lane.train
    order by w.priority desc, w.created_at, w.id
    limit 1
) head
order by waiting.count desc, group_name, lane.train
limit 50
