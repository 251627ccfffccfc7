-- Only manifests that are held.
update /*schema*/manifest m
set planned_at = new.planned_at,
    planned_offset = new.planned_offset,
    next_run_at = new.planned_at,
    write_error = null,
    write_failures = 0,
    write_retry_at = null,
    updated_at = clock_timestamp()
from unnest(:ids::bigint[], :planned_at::timestamptz[], :planned_offsets::interval[])
    as new (id, planned_at, planned_offset)
where m.id = new.id
returning m.id
