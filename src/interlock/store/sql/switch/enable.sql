update /*schema*/manifest
set enabled = true, updated_at = coalesce(:now::timestamptz, clock_timestamp())
where external_id = :external_id
  and not enabled
returning id
