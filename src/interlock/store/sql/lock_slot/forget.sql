with old as materialized (
    select namespace, name, slot from /*schema*/lock_slot
    where expires_at < statement_timestamp() - :older_than::interval
    limit :limit
    for update skip locked
)
delete from /*schema*/lock_slot l using old
where l.namespace = old.namespace and l.name = old.name and l.slot = old.slot
returning l.slot
