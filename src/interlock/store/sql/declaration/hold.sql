-- Held before anything is decided about them: what a settle that came first has committed is then seen.
select id, schedule, planned_at, planned_offset
from /*schema*/manifest
where id = any(:ids::bigint[])
order by id
for update
