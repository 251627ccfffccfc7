with old as materialized (
    select id
    from /*schema*/outbox
    where ended_at < coalesce(:now::timestamptz, statement_timestamp()) - :older_than::interval
      and state in ('delivered', 'expired')
    order by ended_at
    limit :limit
    for update skip locked
), history as (
    delete from /*schema*/outbox_attempt a using old where a.outbox_id = old.id
)
delete from /*schema*/outbox o using old where o.id = old.id
returning o.id
