-- The execution carries this server's lease until it is submitted, like any other claim: if the server is lost meanwhile,
-- recovery queues the work again.
with chosen as materialized (
    select w.*, nextval(:sequence::text::regclass) as new_execution_id,
        coalesce(:now::timestamptz, clock_timestamp()) as moment
    from unnest(:ids::bigint[]) as taken (id)
    join /*schema*/work_queue w on w.id = taken.id
    where w.state = 'queued'
), executed as (
    insert into /*schema*/execution (
        id, entry_id, first_entry_id, previous_execution_id, kind, train, input, manifest_id, fire_key, group_id,
        attempt, crashes, max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff, timeout, created_at,
        trace, submitter, server_id, claim_token
    )
    overriding system value
    select c.new_execution_id, c.id, coalesce(c.first_entry_id, c.id), c.previous_execution_id, c.kind, c.train,
        c.input, c.manifest_id, c.fire_key, c.group_id, c.attempt, c.crashes, c.max_attempts, c.max_crashes,
        c.retry_delay, c.max_retry_delay, c.retry_backoff, c.timeout, c.moment, c.trace, :submitter::text,
        :server::uuid, :token::uuid
    from chosen c
)
/*include:dispatch/_marked*/
returning w.id as entry_id, w.execution_id, w.train, w.input::text as input, w.attempt, w.submits,
    (select m.external_id from /*schema*/manifest m where m.id = w.manifest_id) as manifest
