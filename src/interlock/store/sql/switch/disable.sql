-- The plan stays: it is what the marker comes back to.
update /*schema*/manifest
set enabled = false, next_run_at = null, updated_at = coalesce(:now::timestamptz, clock_timestamp())
where external_id = :external_id
  and enabled
returning id
