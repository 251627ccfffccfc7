select name, app, schedule, max_concurrency, runs_per_tick, distributed, tick_at, tick_runs, last_run_at, last_host,
       runs, failures, skips, last_seen_at
from /*schema*/timer
where namespace = :namespace and (name = :name or :name::text is null)
order by name
limit :limit
