-- One probe of the index per lane, however many entries wait in it. Beside them, what is dispatched and not yet claimed
-- of the trains that this server could run; counted no further than it matters.
with recursive lane as (
    (
        select group_id, train
        from /*schema*/work_queue
        where state = 'queued'
          and ready
        order by group_id, train
        limit 1
    )
    union all
    select following.*
    from lane
    cross join lateral (
        select w.group_id, w.train
        from /*schema*/work_queue w
        where w.state = 'queued'
          and w.ready
          and (w.group_id, w.train) > (lane.group_id, lane.train)
        order by w.group_id, w.train
        limit 1
    ) following
)
select lane.group_id, lane.train, coalesce(g.priority, 0) as group_priority, g.max_active_jobs as cap,
    (
        select count(*)
        from (select from /*schema*/background_job where train = any(:trains::text[]) limit :most_waiting) waiting
    ) as waiting
from lane
left join /*schema*/manifest_group g on g.id = lane.group_id
where lane.train = any(:trains::text[])
  and coalesce(g.enabled, true)
  and not exists (
      select from /*schema*/train t
      where t.paused
        and (t.name in (lane.train, '*') or lane.train = any(t.aliases))
  )
