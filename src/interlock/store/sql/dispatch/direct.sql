-- A whole dispatch in one statement, for free slots of this server's own worker: entries become executions that it holds
-- already. It does nothing, and says why in every row, where there is a cap to count, where entries are to be made ready
-- first, or where the server is not alive any more. Jobs that wait to be claimed come first: they take from the room.
-- Whatever comes first is in a lane whose head comes first, so that of thousands of lanes a few are looked into.
-- Whoever lost entries to another dispatcher looks at more than it locks, so that both find enough.
with recursive lane as (
    /*include:dispatch/_lane*/
), world as materialized (
    select
        exists (select from /*schema*/server where id = :server and state = 'alive') as alive,
        exists (select from /*schema*/manifest_group where max_active_jobs is not null) as capped,
        exists (
            select from /*schema*/work_queue
            where state = 'queued'
              and not ready
              and scheduled_at <= coalesce(:now::timestamptz, statement_timestamp())
        ) as due,
        array(select unnest(t.name || t.aliases) from /*schema*/train t where t.paused) as paused,
        (
            select count(*)
            from (
                select from /*schema*/background_job where train = any(:trains::text[]) limit :room::bigint
            ) job
        ) as waiting
), open as materialized (
    select lane.*, coalesce(g.priority, 0) as group_priority
    from world
    join lane on world.alive and not world.capped and not world.due and world.waiting < :room::bigint
        and not lane.train = any(world.paused) and not '*' = any(world.paused)
    left join /*schema*/manifest_group g on g.id = lane.group_id
    where (lane.train in (select unnest(:trains::text[]))) is true  -- a lookup, also among a thousand
      and coalesce(g.enabled, true)
    order by coalesce(g.priority, 0) desc, lane.priority desc, lane.created_at, lane.id
    limit :looks::bigint
), picked as materialized (
    select head.id, row_number() over (
        order by open.group_priority desc, head.priority desc, head.created_at, head.id
    ) as place
    from open
    cross join lateral (
        -- From the head on: what was dispatched before it lies there until the next vacuum, and is passed once is enough.
        (
            select w.id, w.priority, w.created_at
            from /*schema*/work_queue w
            where w.state = 'queued'
              and w.ready
              and w.group_id = open.group_id
              and w.train = open.train
              and w.priority = open.priority
              and w.created_at >= open.created_at
            order by w.created_at, w.id
            limit :looks::bigint
        )
        union all
        (
            select w.id, w.priority, w.created_at
            from /*schema*/work_queue w
            where w.state = 'queued'
              and w.ready
              and w.group_id = open.group_id
              and w.train = open.train
              and w.priority < open.priority
            order by w.priority desc, w.created_at, w.id
            limit :looks::bigint
        )
    ) head
    order by place
    limit :looks::bigint
), locked as materialized (
    select w.*
    from picked
    join /*schema*/work_queue w on w.id = picked.id
    where w.state = 'queued'
    order by picked.place
    limit greatest(:room::bigint - (select waiting from world), 0)
    for update of w skip locked
), chosen as materialized (
    select l.*, nextval(:sequence::text::regclass) as new_execution_id,
        coalesce(:now::timestamptz, clock_timestamp()) as moment
    from locked l
), executed as (
    /*include:dispatch/_executed*/
), marked as (
    /*include:dispatch/_marked*/
)
select c.new_execution_id, c.train, c.input::text, c.attempt, coalesce(c.first_entry_id, c.id), c.timeout, c.moment,
    c.manifest_id, c.fire_key, (select m.external_id from /*schema*/manifest m where m.id = c.manifest_id), c.key_held,
    c.id as entry_id, world.alive, world.capped, world.due, world.waiting, (select count(*) from picked) as found
from world
left join chosen c on true
