-- Held first, looked at by the next statement: one that waited for the lock inside its own statement would still see the
-- child as it was before.
select m.id, m.train
from /*schema*/manifest m
where m.external_id = :external_id
  and m.schedule_kind = 'dormant'
  and m.parent_id = :parent_id
for no key update
