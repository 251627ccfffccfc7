-- What holds for all work of a group and a train: switches, caps in use, and who lives. Counts stop at the limit.
with live as materialized (
    select s.name, s.roles, s.trains, s.tags, s.slots
    from /*schema*/server s
    where s.state = 'alive'
      and s.lease_until > statement_timestamp()
), routing as materialized (
    -- A train that dispatchers submit elsewhere is run by runners, not by workers.
    select exists (select from live where 'submits:' || :train::text = any(live.tags)) as routed
), serving as materialized (
    select live.name, live.slots, live.trains
    from live, routing
    where case when routing.routed then 'runner' else 'worker' end = any(live.roles)
      and :train::text = any(live.trains)
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
               where e.ended_at is null and e.train <> all(:excluded::text[])
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
       (select count(*) from live where live.roles && '{worker,dispatch}') as dispatchers,
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
       array(
           select distinct shared.train
           from serving
           cross join lateral unnest(serving.trains) as shared (train)
       ) as rivals,
       routing.routed
from routing
left join /*schema*/manifest_group g on g.id = :group_id::bigint
