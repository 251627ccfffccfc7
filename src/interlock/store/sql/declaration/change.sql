-- `columns` holds only what code says differently now; everything else keeps what operators made of it.
-- An edit may have mended what kept the manifest from being queued, so that trouble is forgotten.
with change as materialized (
    select (item ->> 'id')::bigint as id, item -> 'columns' as columns, item -> 'declared' as declared
    from jsonb_array_elements(:changes::jsonb) item
)
update /*schema*/manifest m
set (train, input, group_id, schedule_kind, schedule, time_zone, exclusions, variance, misfire, misfire_threshold,
     parent_id, enabled, priority, max_attempts, retry_delay, max_retry_delay, retry_backoff, timeout, planned_at,
     planned_offset) = (
        select r.train, r.input, r.group_id, r.schedule_kind, r.schedule, r.time_zone, r.exclusions, r.variance,
               r.misfire, r.misfire_threshold, r.parent_id, r.enabled, r.priority, r.max_attempts, r.retry_delay,
               r.max_retry_delay, r.retry_backoff, r.timeout, r.planned_at, r.planned_offset
        from jsonb_populate_record(m, change.columns) r),
    app = :app::text,
    origin = :origin::text,
    declared = change.declared,
    declared_at = case when :origin::text = 'declared' then clock_timestamp() end,
    write_error = null,
    write_failures = 0,
    write_retry_at = null,
    updated_at = clock_timestamp()
from change
where m.id = change.id
