insert into /*schema*/manifest
    (id, external_id, app, origin, declared, declared_at, train, input, group_id, schedule_kind, schedule, time_zone,
     exclusions, variance, misfire, misfire_threshold, parent_id, enabled, priority, max_attempts, retry_delay,
     max_retry_delay, retry_backoff, timeout, planned_at, planned_offset, next_run_at)
overriding system value
select r.id, r.external_id, :app::text, :origin::text, r.declared,
       case when :origin::text = 'declared' then clock_timestamp() end,
       r.train, r.input, r.group_id, r.schedule_kind, r.schedule, r.time_zone,
       r.exclusions, r.variance, r.misfire, r.misfire_threshold, r.parent_id, r.enabled, r.priority, r.max_attempts,
       r.retry_delay, r.max_retry_delay, r.retry_backoff, r.timeout, r.planned_at, r.planned_offset,
       case when r.enabled then r.planned_at end
from jsonb_populate_recordset(null::/*schema*/manifest, :rows::jsonb) r
