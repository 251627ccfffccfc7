-- Twice as many are looked at as are locked, so that two dispatchers who look at the same time find enough for both.
-- Locking goes by id alone: the state of a queue is not what its statistics say, and the primary key serves any state.
with picked as materialized (
    select head.id
    from unnest(
        :group_ids::bigint[], :trains::text[], :group_priorities::integer[], :limits::integer[]
    ) as lane (group_id, train, group_priority, takes)
    cross join lateral (
        select w.id, w.priority, w.created_at
        from /*schema*/work_queue w
        where w.state = 'queued'
          and w.ready
          and w.group_id = lane.group_id
          and w.train = lane.train
          and w.id <> all(:chosen::bigint[])
        order by w.priority desc, w.created_at, w.id
        limit lane.takes
    ) head
    order by lane.group_priority desc, head.priority desc, head.created_at, head.id
    limit :limit::bigint * 2
), locked as materialized (
    select w.id, w.group_id, w.train, coalesce(g.priority, 0) as group_priority, w.priority, w.created_at
    from /*schema*/work_queue w
    left join /*schema*/manifest_group g on g.id = w.group_id
    where w.id = any(array(select id from picked))
      and w.state = 'queued'
    order by coalesce(g.priority, 0) desc, w.priority desc, w.created_at, w.id
    limit :limit::bigint
    for update of w skip locked
)
select locked.id, locked.group_id, locked.train, locked.group_priority, seen.found
from (select count(*) as found from picked) seen
left join locked on true
order by locked.group_priority desc, locked.priority desc, locked.created_at, locked.id
