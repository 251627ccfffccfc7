-- Locked entries become executions that this server's worker holds already: its slots are free, so there is nobody to offer
-- them to. A server that is not alive any more takes nothing, and the entries stay where they are.
with chosen as materialized (
    select w.*, taken.place, nextval(:sequence::text::regclass) as new_execution_id,
        coalesce(:now::timestamptz, clock_timestamp()) as moment
    from unnest(:ids::bigint[]) with ordinality as taken (id, place)
    join /*schema*/work_queue w on w.id = taken.id
    where w.state = 'queued'
      and exists (select from /*schema*/server s where s.id = :server and s.state = 'alive')
), executed as (
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
), marked as (
    update /*schema*/work_queue w
    set state = 'dispatched', execution_id = c.new_execution_id, left_at = c.moment
    from chosen c
    where w.id = c.id
      and w.state = 'queued'
)
select c.new_execution_id, c.train, c.input::text, c.attempt, coalesce(c.first_entry_id, c.id), c.timeout, c.moment,
    c.manifest_id, c.fire_key, (select m.external_id from /*schema*/manifest m where m.id = c.manifest_id), c.key_held,
    c.id as entry_id
from chosen c
order by c.place
