insert into /*schema*/train as t (name, paused, paused_by, paused_at)
values (:train, true, :actor, clock_timestamp())
on conflict (name) do update
set paused = true, paused_by = excluded.paused_by, paused_at = excluded.paused_at
where not t.paused
returning t.name
