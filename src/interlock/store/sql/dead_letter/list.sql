select id, state, reason, kind, train, manifest_id, external_id, first_entry_id, execution_id, attempts, crashes, failure,
    error_type, error_message, created_at, resolved_at, resolved_by, note, requeued_entry_id
from /*schema*/dead_letter
where state = 'awaiting_intervention'
  and id > :after
order by id
limit :limit
