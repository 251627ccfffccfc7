with held as materialized (
    select * from /*schema*/lock_slot
    where namespace = :namespace and name = :name and slot = :slot and expires_at > statement_timestamp()
    for update
),
freed as (
    update /*schema*/lock_slot l set token = null, server_id = null, expires_at = statement_timestamp()
    from held
    where l.namespace = held.namespace and l.name = held.name and l.slot = held.slot
    returning l.slot
)
select held.name, held.slot, held.holder, held.server_id, held.slots, held.fence, held.ttl, held.acquired_at,
       statement_timestamp() - held.acquired_at as age, held.expires_at - statement_timestamp() as expires_in
from held join freed using (slot)
