insert into /*schema*/outbox_topic as t (topic, parked, parked_by, parked_at)
values (:topic, :parked, :actor, clock_timestamp())
on conflict (topic) do update
set parked = excluded.parked, parked_by = excluded.parked_by, parked_at = excluded.parked_at
where t.parked <> excluded.parked
returning topic
