-- Claims entries, inserts executions and background jobs, and marks the entries, all at once. The numbers of the
-- executions are drawn first, so that each of the three writes is one pass over the same rows.
with chosen as materialized (
    select w.*, taken.group_priority as rank, nextval(:sequence::text::regclass) as new_execution_id,
        coalesce(:now::timestamptz, clock_timestamp()) as moment
    from unnest(:ids::bigint[], :group_priorities::integer[]) as taken (id, group_priority)
    join /*schema*/work_queue w on w.id = taken.id
    where w.state = 'queued'
), executed as (
    insert into /*schema*/execution (
        id, entry_id, first_entry_id, previous_execution_id, kind, train, input, manifest_id, fire_key, group_id,
        attempt, crashes, max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff, timeout, created_at,
        trace
    )
    overriding system value
    select c.new_execution_id, c.id, coalesce(c.first_entry_id, c.id), c.previous_execution_id, c.kind, c.train,
        c.input, c.manifest_id, c.fire_key, c.group_id, c.attempt, c.crashes, c.max_attempts, c.max_crashes,
        c.retry_delay, c.max_retry_delay, c.retry_backoff, c.timeout, c.moment, c.trace
    from chosen c
), offered as (
    insert into /*schema*/background_job (execution_id, train, group_priority, priority, created_at, entry_id)
    select c.new_execution_id, c.train, c.rank, c.priority, c.created_at, c.id
    from chosen c
)
/*include:dispatch/_marked*/
returning w.id as entry_id, w.execution_id, w.train, w.attempt,
    (select m.external_id from /*schema*/manifest m where m.id = w.manifest_id) as manifest
