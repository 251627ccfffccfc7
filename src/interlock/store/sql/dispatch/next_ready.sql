select scheduled_at - coalesce(:now::timestamptz, statement_timestamp())
from /*schema*/work_queue
where state = 'queued'
  and not ready
order by scheduled_at
limit 1
