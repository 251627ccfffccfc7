-- What holds for all work of a group and a train: switches, caps in use, and who lives. Counts stop at the limit.
with live as materialized (
    select s.id, s.name, s.roles, s.trains, s.tags, s.slots
    from /*schema*/server s
    where s.state = 'alive'
      and s.lease_until > statement_timestamp()
), dispatching as materialized (
    -- Each says of the cap on everything what it was told: `max_active_jobs:200`, `uncounted:train`.
    select live.tags, (
               select max(case when tag ~ '^max_active_jobs:[0-9]{1,9}$' then split_part(tag, ':', 2)::integer end)
               from unnest(live.tags) tag
           ) as cap
    from live
    where live.roles && '{worker,dispatch}'
), uncounted as materialized (
    select array(
        select distinct substring(tag from '^uncounted:(.*)$')
        from dispatching
        cross join unnest(dispatching.tags) tag
        where tag like 'uncounted:%'
    ) || case when exists (select from dispatching) then '{}' else :excluded::text[] end as trains
), routing as materialized (
    -- A train that dispatchers submit elsewhere is run by runners, not by workers.
    select exists (select from live where 'submits:' || :train::text = any(live.tags)) as routed
), serving as materialized (
    select live.id, live.name, live.slots, live.trains,
           (
               -- As `concurrency:3:train` among its tags.
               select min(case when split_part(tag, ':', 2) ~ '^[0-9]{1,9}$' then split_part(tag, ':', 2)::integer end)
               from unnest(live.tags) tag
               where tag = 'concurrency:' || split_part(tag, ':', 2) || ':' || :train::text
           ) as most_of_train
    from live, routing
    where case when routing.routed then 'runner' else 'worker' end = any(live.roles)
      and :train::text = any(live.trains)
), held as materialized (
    select e.server_id, count(*) as jobs, count(*) filter (
        where e.train = :train::text
           or e.train in (
               select unnest(t.name || t.aliases)
               from /*schema*/train t
               where :train::text = any(t.name || t.aliases)
           )
    ) as of_train
    from /*schema*/execution e
    where e.ended_at is null
      and e.state = 'in_progress'
    group by e.server_id
), room as materialized (
    select coalesce(held.jobs, 0) >= serving.slots as is_full,
           coalesce(held.of_train >= serving.most_of_train, false) as is_at_limit
    from serving
    left join held on held.server_id = serving.id
)
select coalesce(:now::timestamptz, statement_timestamp()) as now,
       g.name as group_name, coalesce(g.enabled, true) as group_enabled, g.max_active_jobs as group_cap,
       (
           select count(*)
           from (
               select from /*schema*/execution e
               where e.ended_at is null and e.group_id = :group_id::bigint
               limit :most::integer
           ) active
       ) as group_active,
       (
           select count(*)
           from (
               select from /*schema*/execution e
               where e.ended_at is null and e.train <> all((select uncounted.trains from uncounted)::text[])
               limit :most::integer
           ) active
       ) as active,
       array(
           select t.name
           from /*schema*/train t
           where t.paused
             and (t.name in (:train::text, '*') or :train::text = any(t.aliases))
           order by t.name
       ) as pauses,
       (select count(*) from live) as servers,
       (select count(*) from live where 'manifests' = any(live.roles)) as managers,
       (select count(*) from dispatching) as dispatchers,
       (select case when count(*) = count(dispatching.cap) then max(dispatching.cap) end from dispatching) as fleet_cap,
       (select uncounted.trains from uncounted) as uncounted,
       (select count(*) from live where 'runner' = any(live.roles)) as runners,
       (select count(*) from live where 'timers' = any(live.roles)) as timer_servers,
       array(
           select serving.name
           from serving
           order by serving.name
           limit :most::integer
       ) as workers,
       (
           select coalesce(sum(serving.slots), 0)::integer
           from serving
       ) as slots,
       (select count(*) from room where is_full) as full,
       (select count(*) from room where is_at_limit and not is_full) as at_limit,
       (select count(*) from room where not is_full and not is_at_limit) as with_room,
       array(
           select distinct shared.train
           from serving
           cross join lateral unnest(serving.trains) as shared (train)
       ) as rivals,
       routing.routed
from routing
left join /*schema*/manifest_group g on g.id = :group_id::bigint
