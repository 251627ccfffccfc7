-- In the consumer's own transaction: a second one that comes meanwhile waits here for the first to end.
insert into /*schema*/inbox (consumer, message_id)
values (:consumer, :message_id)
on conflict do nothing
returning true as first
