update /*schema*/work_queue
set state = 'failed', failure = :failure, left_at = coalesce(:now::timestamptz, clock_timestamp()), key_held = false
where id = :id
  and state = 'queued'
returning train, coalesce(first_entry_id, id) as first_entry_id, manifest_id, kind
