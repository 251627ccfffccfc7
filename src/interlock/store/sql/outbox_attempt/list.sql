select attempt, host, started_at, ended_at, outcome, error_type, error_message, record_id, retry_at
from /*schema*/outbox_attempt
where outbox_id = :outbox_id
order by id
limit 1000
