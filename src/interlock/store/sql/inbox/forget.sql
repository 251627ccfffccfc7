with old as materialized (
    select consumer, message_id
    from /*schema*/inbox
    where handled_at < coalesce(:now::timestamptz, statement_timestamp()) - :older_than::interval
    order by handled_at
    limit :limit
    for update skip locked
)
delete from /*schema*/inbox i
using old
where i.consumer = old.consumer
  and i.message_id = old.message_id
returning i.message_id
