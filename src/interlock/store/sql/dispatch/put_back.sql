-- Claims to submit that came to nothing, because nobody has room for the work or an answer was lost: as if they had not
-- been made. The executions never began, so they are no record of anything. The entries are locked first, as everywhere,
-- and by id alone, as in `requeue`.
with held as materialized (
    select e.id, e.entry_id
    from /*schema*/execution e
    where e.ended_at is null
      and e.state = 'pending'
      and e.claim_token = :token
), entry as materialized (
    select w.id, w.state, w.execution_id
    from held
    join /*schema*/work_queue w on w.id = held.entry_id
    where w.execution_id = held.id
    order by w.id
    for update of w
), undone as (
    delete from /*schema*/execution e
    using entry
    where entry.state = 'dispatched'
      and e.id = entry.execution_id
      and e.claim_token = :token
      and e.state = 'pending'
    returning e.id, e.entry_id
)
update /*schema*/work_queue w
set state = 'queued', left_at = null, execution_id = null
from undone
where w.id = undone.entry_id
  and w.execution_id = undone.id
returning w.id
