-- Claims to submit that came to nothing, because nobody has room for the work or an answer was lost: as if they had not
-- been made. The executions never began, so they are no record of anything. The entries are locked first, as everywhere.
with held as materialized (
    select e.id, e.entry_id
    from /*schema*/execution e
    where e.ended_at is null
      and e.state = 'pending'
      and e.claim_token = :token
), entry as materialized (
    select w.id, held.id as execution_id
    from held
    join /*schema*/work_queue w on w.id = held.entry_id
    where w.state = 'dispatched'
      and w.execution_id = held.id
    order by w.id
    for update of w
), undone as (
    delete from /*schema*/execution e
    using entry
    where e.id = entry.execution_id
      and e.claim_token = :token
      and e.state = 'pending'
    returning e.entry_id
)
update /*schema*/work_queue w
set state = 'queued', left_at = null, execution_id = null
from undone
where w.id = undone.entry_id
  and w.state = 'dispatched'
returning w.id
