-- One probe of the index per lane, however many entries wait in it. Beside them, in every row: whether any group has a
-- cap and, if it is asked for, what is dispatched and not yet claimed of the trains that this server could run.
with recursive lane as (
    /*include:dispatch/_lane*/
)
select open.group_id, open.train, open.group_priority, open.cap, world.waiting, world.capped
from (
    select
        case when :count_waiting then (
            select coalesce(jsonb_object_agg(j.train, j.jobs), '{}')::text
            from (
                select train, count(*) as jobs
                from /*schema*/background_job
                where train = any(:trains::text[])
                group by train
            ) j
        ) end as waiting,
        exists (select from /*schema*/manifest_group where max_active_jobs is not null) as capped
) world
left join lateral (
    select lane.group_id, lane.train, coalesce(g.priority, 0) as group_priority, g.max_active_jobs as cap
    from lane
    left join /*schema*/manifest_group g on g.id = lane.group_id
    where lane.train = any(:trains::text[])
      and coalesce(g.enabled, true)
      and not exists (
          select from /*schema*/train t
          where t.paused
            and (t.name in (lane.train, '*') or lane.train = any(t.aliases))
      )
) open on true
