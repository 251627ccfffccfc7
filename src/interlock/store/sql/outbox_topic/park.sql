-- A topic that is not known is not parked: there is nothing to take back.
insert into /*schema*/outbox_topic as t (topic, parked, parked_by, parked_at)
select :topic, :parked::boolean, :actor, clock_timestamp()
where :parked::boolean or exists (select from /*schema*/outbox_topic where topic = :topic)
on conflict (topic) do update
set parked = excluded.parked, parked_by = excluded.parked_by, parked_at = excluded.parked_at
where t.parked <> excluded.parked
returning topic
