-- Never acquires: what has expired is lost, even if nobody took it.
update /*schema*/lock_slot l
set expires_at = clock_timestamp() + held.ttl, ttl = held.ttl
from unnest(:names::text[], :slot_numbers::integer[], :tokens::uuid[], :ttls::interval[])
         as held (name, slot, token, ttl)
where l.namespace = :namespace and l.name = held.name and l.slot = held.slot
  and l.token = held.token and l.expires_at > statement_timestamp()
returning l.token, l.expires_at - clock_timestamp() as remaining
