update /*schema*/dead_letter
set state = 'acknowledged', resolved_at = coalesce(:now::timestamptz, clock_timestamp()), resolved_by = :actor,
    note = coalesce(:note, note)
where id = :id
  and state = 'awaiting_intervention'
returning id, manifest_id, kind
