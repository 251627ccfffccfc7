with old as materialized (
    select id, key, state
    from /*schema*/outbox
    where ended_at < coalesce(:now::timestamptz, statement_timestamp()) - :older_than::interval
      and state in ('delivered', 'expired')
    order by ended_at
    limit :limit
    for update skip locked
), overtaken as (
    -- A redrive looks for later messages of the key that were delivered: that there were some outlives them.
    update /*schema*/outbox d
    set out_of_order = true
    from (
        select key, max(id) as last from old where key is not null and state = 'delivered' group by key
    ) g
    where d.state in ('dead', 'needs_review')
      and d.key = any(array(select key from old))
      and d.key = g.key
      and d.id < g.last
      and not d.out_of_order
), history as (
    delete from /*schema*/outbox_attempt a using old where a.outbox_id = old.id
)
delete from /*schema*/outbox o using old where o.id = old.id
returning o.id
