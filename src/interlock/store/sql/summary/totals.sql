-- For a small, young database: it reads everything.
with pickups as (
    select e.started_at - greatest(q.created_at, q.scheduled_at) as waited
    from /*schema*/execution e
    join /*schema*/work_queue q on q.id = e.entry_id
    where e.started_at is not null
)
select
    (select count(*) from /*schema*/work_queue) as queued,
    (select count(*) from /*schema*/execution where state = 'completed') as completed,
    (select count(*) from /*schema*/execution where attempt > 1) as retried,
    (select count(*) from /*schema*/dead_letter) as dead_lettered,
    (select count(*) from /*schema*/execution e
     where e.failure = 'worker_lost'
       and exists (select from /*schema*/execution again where again.previous_execution_id = e.id)) as recovered,
    (select max(again.started_at - s.renewed_at)
     from /*schema*/execution e
     join /*schema*/execution again on again.previous_execution_id = e.id
     join /*schema*/server s on s.id = e.server_id
     where e.failure = 'worker_lost') as recovered_within,
    (select percentile_cont(0.5) within group (order by waited) from pickups) as pickup_median,
    (select percentile_cont(0.95) within group (order by waited) from pickups) as pickup_p95,
    (select coalesce(sum(runs), 0)::bigint from /*schema*/timer) as timer_runs,
    (select count(*) from /*schema*/outbox where state = 'delivered') as messages_delivered,
    (select count(*) from /*schema*/server) as servers,
    (select count(*) from /*schema*/server where state = 'lost') as servers_lost
