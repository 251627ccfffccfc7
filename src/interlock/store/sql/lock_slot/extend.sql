-- Never acquires: what has expired is lost, even if nobody took it. Nor does it shorten a lease: of two who extend at once,
-- the one with the longer ttl may be answered first.
update /*schema*/lock_slot l
set expires_at = greatest(l.expires_at, clock_timestamp() + held.ttl), ttl = held.ttl
from unnest(:names::text[], :slot_numbers::integer[], :tokens::uuid[], :ttls::interval[])
         as held (name, slot, token, ttl)
where l.namespace = :namespace and l.name = held.name and l.slot = held.slot
  and l.token = held.token and l.expires_at > statement_timestamp()
returning l.token, least(l.expires_at - clock_timestamp(), held.ttl) as remaining
