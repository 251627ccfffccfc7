with old as materialized (
    select namespace, name from /*schema*/timer
    where last_seen_at < statement_timestamp() - :older_than::interval
    limit :limit
    for update skip locked
)
delete from /*schema*/timer t using old
where t.namespace = old.namespace and t.name = old.name
returning t.name
