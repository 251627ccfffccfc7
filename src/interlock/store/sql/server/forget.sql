-- Nothing refers to a server row by key, so old ones go without a search elsewhere.
with old as materialized (
    select id from /*schema*/server
    where state in ('gone', 'lost') and ended_at < statement_timestamp() - :older_than::interval
    order by ended_at
    limit :limit
    for update skip locked
)
delete from /*schema*/server s using old where s.id = old.id
returning s.id
