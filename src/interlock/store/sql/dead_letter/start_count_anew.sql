-- Failures are counted since the last success or resolution, whichever is later.
update /*schema*/manifest
set last_resolved_at = coalesce(:now::timestamptz, clock_timestamp()),
    updated_at = coalesce(:now::timestamptz, clock_timestamp())
where id = :manifest_id
