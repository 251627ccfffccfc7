-- One round trip: the first free slot from a random one on, or who is in the way. Nothing waits, so that a lease is
-- never stamped before a wait. The smallest N of all holders binds. A free slot is offered to one N, and the row itself
-- says to which: so those who take in the same instant, each unseen by the other, cannot take it for two.
-- Subqueries instead of joins: each node that starts and ends costs more here than the few rows it reads.
with holding as (
    select count(*) as made,
           count(*) filter (
               where slot < :slots::integer and (slots = :slots::integer or expires_at > statement_timestamp())
           ) as settled,
           count(*) filter (where expires_at > statement_timestamp()) as holders,
           min(slots) filter (where expires_at > statement_timestamp()) as narrowest,
           max(slots) filter (where expires_at > statement_timestamp()) as widest,
           min(expires_at) filter (where expires_at > statement_timestamp()) as soonest
    from /*schema*/lock_slot
    where namespace = :namespace and name = :name
),
free as materialized (
    select slot, case when token is not null then holder end as expired
    from /*schema*/lock_slot
    where namespace = :namespace and name = :name and expires_at <= statement_timestamp()
      and slots = :slots::integer
      and slot < (
          select least(:slots::integer, narrowest) from holding where holders < least(:slots::integer, narrowest)
      )
    order by (slot + :slots::integer - :start::integer) % :slots::integer
    limit 1
    for update skip locked
),
taken as (
    update /*schema*/lock_slot
    set token = :token, server_id = :server_id, holder = :holder, fence = default,
        ttl = :ttl::interval, acquired_at = clock_timestamp(), expires_at = clock_timestamp() + :ttl::interval
    where namespace = :namespace and name = :name and slot = (select slot from free)
    returning slot, fence, acquired_at, expires_at - clock_timestamp() as remaining,
              (select expired from free) as expired
)
select taken.slot, taken.fence, taken.acquired_at, taken.remaining, taken.expired,
       holding.made, holding.settled, holding.holders, holding.soonest - statement_timestamp() as free_in,
       holding.narrowest, holding.widest
from holding left join taken on true
