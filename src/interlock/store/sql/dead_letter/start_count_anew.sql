-- Failures are counted since the last success or resolution, whichever is later. Locked by id, as everybody does.
with held as materialized (
    select m.id
    from /*schema*/manifest m
    where m.id = any(:manifest_ids::bigint[])
    order by m.id
    for update
)
update /*schema*/manifest m
set last_resolved_at = coalesce(:now::timestamptz, clock_timestamp()),
    updated_at = coalesce(:now::timestamptz, clock_timestamp())
from held
where m.id = held.id
