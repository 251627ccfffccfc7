select name, slot, holder, server_id, slots, fence, ttl, acquired_at, statement_timestamp() - acquired_at as age,
       expires_at - statement_timestamp() as expires_in
from /*schema*/lock_slot
where namespace = :namespace and (name = :name or :name::text is null) and expires_at > statement_timestamp()
order by name, slot
