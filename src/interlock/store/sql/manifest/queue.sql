-- Only manifests that are held. An entry that exists already (of this fire, or of another that is still queued) is the
-- backstop of both unique indexes: nothing is written, and the manifest is missing from the answer.
with wanted as (
    select *
    from unnest(
        :ids::bigint[], :fire_keys::text[], :attempts::integer[], :priorities::smallint[], :max_attempts::integer[],
        :retry_delays::interval[], :max_retry_delays::interval[], :retry_backoffs::real[], :timeouts::interval[],
        :planned_at::timestamptz[], :planned_offsets::interval[], :consumed::bigint[]
    ) with ordinality as w (
        id, fire_key, attempt, priority, max_attempts, retry_delay, max_retry_delay, retry_backoff, timeout,
        planned_at, planned_offset, consumed, place
    )
),
written as (
    insert into /*schema*/work_queue (
        kind, train, input, manifest_id, fire_key, attempt, max_attempts, max_crashes, retry_delay, max_retry_delay,
        retry_backoff, timeout, group_id, group_priority, priority, created_at, scheduled_at, ready
    )
    select
        'scheduled', m.train, m.input, m.id, w.fire_key, w.attempt, w.max_attempts, :max_crashes::integer,
        w.retry_delay, w.max_retry_delay, w.retry_backoff, w.timeout, g.id, g.priority, w.priority,
        coalesce(:now, statement_timestamp()), coalesce(:now, statement_timestamp()), true
    from wanted w
    join /*schema*/manifest m on m.id = w.id
    join /*schema*/manifest_group g on g.id = m.group_id
    order by w.place
    on conflict do nothing
    returning id, manifest_id
)
update /*schema*/manifest m
set next_run_at = null,
    planned_at = w.planned_at,
    planned_offset = w.planned_offset,
    consumed_execution_id = coalesce(w.consumed, m.consumed_execution_id),
    write_error = null,
    write_failures = 0,
    write_retry_at = null,
    updated_at = clock_timestamp()
from written
join wanted w on w.id = written.manifest_id
where m.id = w.id
returning m.id, written.id as entry_id
