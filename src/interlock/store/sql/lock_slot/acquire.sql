-- One round trip: the first free slot from a random one on, or who is in the way. Nothing waits, so that a lease is
-- never stamped before a wait. The smallest N of all holders binds; with one N for all, the rows themselves are the cap.
-- Nothing is taken while rows are missing: they are made first, and every slot has its chance.
with holding as (
    select count(*) filter (where slot < :slots::integer) as known,
           count(*) filter (where expires_at > statement_timestamp()) as holders,
           min(slots) filter (where expires_at > statement_timestamp()) as narrowest,
           max(slots) filter (where expires_at > statement_timestamp()) as widest,
           min(expires_at) filter (where expires_at > statement_timestamp()) as soonest,
           -- The number in front makes the order; a sort in the aggregate would cost more than all the rest.
           min(to_char(slots, 'FM00000') || holder)
               filter (where expires_at > statement_timestamp() and slots < :slots::integer) as narrower,
           max(to_char(slots, 'FM00000') || holder)
               filter (where expires_at > statement_timestamp() and slots > :slots::integer) as wider
    from /*schema*/lock_slot
    where namespace = :namespace and name = :name
),
free as materialized (
    select l.slot, case when l.token is not null then l.holder end as expired
    from /*schema*/lock_slot l, holding
    where l.namespace = :namespace and l.name = :name
      and holding.known = :slots::integer
      and l.slot < least(:slots::integer, holding.narrowest)
      and holding.holders < least(:slots::integer, holding.narrowest)
      and l.expires_at <= statement_timestamp()
    order by (l.slot + :slots::integer - :start::integer) % :slots::integer
    limit 1
    for update of l skip locked
),
taken as (
    update /*schema*/lock_slot l
    set token = :token, server_id = :server_id, holder = :holder, slots = :slots::integer, fence = default,
        ttl = :ttl::interval, acquired_at = clock_timestamp(), expires_at = clock_timestamp() + :ttl::interval
    from free
    where l.namespace = :namespace and l.name = :name and l.slot = free.slot
    returning l.slot, l.fence, l.acquired_at, l.expires_at - clock_timestamp() as remaining, free.expired
)
select taken.slot, taken.fence, taken.acquired_at, taken.remaining, taken.expired,
       holding.known, holding.holders, holding.soonest - statement_timestamp() as free_in,
       holding.narrowest, substr(holding.narrower, 6) as narrowest_by,
       holding.widest, substr(holding.wider, 6) as widest_by
from holding left join taken on true
