with old as materialized (
    select id
    from /*schema*/dead_letter
    where resolved_at < coalesce(:now::timestamptz, statement_timestamp()) - :older_than::interval
    order by resolved_at
    limit :limit
    for update skip locked
)
delete from /*schema*/dead_letter d where d.id = any(array(select id from old))
returning d.id
