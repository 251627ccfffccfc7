-- Locked first, looked at by the next statement: of two runs of a manifest that end at once each would see the other as
-- active, and neither would set the marker. Dependents are woken below, so they are locked here too, all by id.
select m.id
from /*schema*/manifest m
where m.id = any(:ids::bigint[])
   or (m.parent_id = any(:succeeded::bigint[]) and m.schedule_kind = 'dependent')
order by m.id
for no key update
