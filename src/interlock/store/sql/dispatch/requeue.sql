-- A submit that failed: the execution is closed and its entry queued again in its old place, both or neither. The entry is
-- looked up by id alone: its state would offer an index of all that left the queue, which seems empty when it was analyzed
-- before the queue was used.
with entry as materialized (
    select w.id, w.state, w.execution_id
    from /*schema*/work_queue w
    where w.id = :entry_id
    for update
), closed as (
    update /*schema*/execution e
    set state = 'failed', failure = 'submit_failed', ended_at = coalesce(:now::timestamptz, clock_timestamp()),
        error_type = :error_type, error_message = :error_message
    from entry
    where entry.state = 'dispatched'
      and entry.execution_id = :execution_id
      and e.id = :execution_id
      and e.entry_id = entry.id
      and e.claim_token = :token
      and e.state = 'pending'
    returning e.id, e.entry_id, e.ended_at
)
update /*schema*/work_queue w
set state = 'queued', left_at = null, execution_id = null, submits = w.submits + 1, previous_execution_id = closed.id,
    scheduled_at = closed.ended_at + :delay::interval, ready = false
from closed
where w.id = closed.entry_id
  and w.execution_id = closed.id
returning w.id
