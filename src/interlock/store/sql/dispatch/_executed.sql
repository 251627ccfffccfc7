-- The chosen entries become executions that this server's worker holds from the start.
insert into /*schema*/execution (
    id, state, entry_id, first_entry_id, previous_execution_id, kind, train, input, manifest_id, fire_key, group_id,
    attempt, crashes, max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff, timeout, created_at,
    trace, server_id, host, claim_token, started_at
)
overriding system value
select c.new_execution_id, 'in_progress', c.id, coalesce(c.first_entry_id, c.id), c.previous_execution_id, c.kind,
    c.train, c.input, c.manifest_id, c.fire_key, c.group_id, c.attempt, c.crashes, c.max_attempts, c.max_crashes,
    c.retry_delay, c.max_retry_delay, c.retry_backoff, c.timeout, c.moment, c.trace, :server, :host::text,
    :token::uuid, c.moment
from chosen c
