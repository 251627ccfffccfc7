-- The acts are numbered as they are written, so the oldest stand at the beginning of the primary key: a batch looks at no
-- others, and needs no index of its own. What is young is only looked at, not locked.
with oldest as materialized (
    select id, at from /*schema*/audit order by id limit :limit
), old as materialized (
    select a.id
    from /*schema*/audit a
    where a.id = any(array(
        select id from oldest
        where at < coalesce(:now::timestamptz, statement_timestamp()) - :older_than::interval
    ))
    for update skip locked
)
delete from /*schema*/audit a where a.id = any(array(select id from old))
returning a.id
