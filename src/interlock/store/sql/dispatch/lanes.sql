-- One probe of the index per lane, however many entries wait in it; the lanes come in the order of their heads. Beside
-- them, in every row: whether any group has a cap and, if it is asked for, what is dispatched and not yet claimed of the
-- trains that this server could run.
with recursive lane as (
    /*include:dispatch/_lane*/
), world as materialized (
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
        exists (select from /*schema*/manifest_group where max_active_jobs is not null) as capped,
        array(select unnest(t.name || t.aliases) from /*schema*/train t where t.paused) as paused
), open as (
    select lane.group_id, lane.train, coalesce(g.priority, 0) as group_priority, g.max_active_jobs as cap,
        lane.priority, lane.created_at, lane.id
    from world
    join lane on not lane.train = any(world.paused) and not '*' = any(world.paused)
    left join /*schema*/manifest_group g on g.id = lane.group_id
    where (lane.train in (select unnest(:trains::text[]))) is true  -- a lookup, also among a thousand
      and coalesce(g.enabled, true)
)
select open.group_id, open.train, open.group_priority, open.cap, world.waiting, world.capped
from world
left join open on true
order by open.group_priority desc, open.priority desc, open.created_at, open.id
