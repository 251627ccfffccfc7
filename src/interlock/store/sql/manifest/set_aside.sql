-- Only manifests that are held. The plan stays; the marker is the time of the next try.
update /*schema*/manifest m
set write_error = refused.error,
    write_failures = m.write_failures + 1,
    write_retry_at = coalesce(:now, clock_timestamp()) + refused.pause,
    next_run_at = coalesce(:now, clock_timestamp()) + refused.pause,
    updated_at = clock_timestamp()
from unnest(:ids::bigint[], :errors::text[], :pauses::interval[]) as refused (id, error, pause)
where m.id = refused.id
returning m.id
