-- The chosen entries leave the queue, each pointing at its execution.
update /*schema*/work_queue w
set state = 'dispatched', execution_id = c.new_execution_id, left_at = c.moment
from chosen c
where w.id = c.id
  and w.state = 'queued'
