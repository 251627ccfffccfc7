-- To nobody, where more would be taken than the smallest N allows.
update /*schema*/lock_slot
set slots = case when slot = any(:offered::integer[]) then :slots::integer end
where namespace = :namespace and name = :name and slot = any(:free::integer[])
