insert into /*schema*/timer (namespace, name, app, schedule, max_concurrency, runs_per_tick, distributed)
select :namespace, t.name, :app, t.schedule, t.max_concurrency, t.runs_per_tick, t.distributed
from unnest(:names::text[], :schedules::text[]::jsonb[], :caps::integer[], :runs_per_ticks::integer[],
            :distributed::boolean[]) as t (name, schedule, max_concurrency, runs_per_tick, distributed)
order by t.name
on conflict (namespace, name) do update
set app = excluded.app, schedule = excluded.schedule, max_concurrency = excluded.max_concurrency,
    runs_per_tick = excluded.runs_per_tick, distributed = excluded.distributed, last_seen_at = clock_timestamp()
returning name
