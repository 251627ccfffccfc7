-- The row lock is the hold: others skip the row until the transaction ends, whichever way it does. They still read to
-- which N it is offered, and that is the N of this hold.
with holding as (
    select count(*) as made,
           count(*) filter (
               where slot < :slots::integer and (slots = :slots::integer or expires_at > statement_timestamp())
           ) as settled,
           count(*) filter (where expires_at > statement_timestamp()) as holders,
           min(slots) filter (where expires_at > statement_timestamp()) as narrowest
    from /*schema*/lock_slot
    where namespace = :namespace and name = :name
),
free as materialized (
    select l.slot
    from /*schema*/lock_slot l, holding
    where l.namespace = :namespace and l.name = :name
      and l.slots = :slots::integer
      and l.slot < least(:slots::integer, holding.narrowest)
      and holding.holders < least(:slots::integer, holding.narrowest)
      and l.expires_at <= statement_timestamp()
    order by (l.slot + :slots::integer - :start::integer) % :slots::integer
    limit 1
    for update of l skip locked
),
taken as (
    update /*schema*/lock_slot l set fence = default
    from free
    where l.namespace = :namespace and l.name = :name and l.slot = free.slot
    returning l.slot, l.fence
)
select taken.slot, taken.fence, holding.made, holding.settled, holding.holders, holding.narrowest
from holding left join taken on true
