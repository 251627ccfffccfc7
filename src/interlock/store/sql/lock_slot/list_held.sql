select slot, slots, case when expires_at > statement_timestamp() then holder end as holder
from /*schema*/lock_slot
where namespace = :namespace and name = :name and slot <> all(:free::integer[])
