-- A train that was announced as it is, and lately, is not written again, nor even locked.
insert into /*schema*/train (
    name, aliases, app, group_id, input_schema, retention, priority, max_attempts, retry_delay, max_retry_delay,
    retry_backoff, timeout
)
select r.name, r.aliases, :app::text, r.group_id, r.input_schema, r.retention, r.priority, r.max_attempts,
    r.retry_delay, r.max_retry_delay, r.retry_backoff, r.timeout
from jsonb_populate_recordset(null::/*schema*/train, :rows::jsonb) r
where not exists (
    select from /*schema*/train t
    where t.name = r.name
      and (:only_new::boolean or (
          t.last_seen_at > statement_timestamp() - interval '1 hour'
          and (t.aliases, t.app, t.group_id, t.input_schema, t.retention, t.priority, t.max_attempts, t.retry_delay,
               t.max_retry_delay, t.retry_backoff, t.timeout)
                is not distinct from (r.aliases, :app::text, r.group_id, r.input_schema, r.retention, r.priority,
                                      r.max_attempts, r.retry_delay, r.max_retry_delay, r.retry_backoff, r.timeout))))
order by r.name
on conflict (name) do update
set aliases = excluded.aliases, app = excluded.app, group_id = excluded.group_id,
    input_schema = excluded.input_schema, retention = excluded.retention, priority = excluded.priority,
    max_attempts = excluded.max_attempts, retry_delay = excluded.retry_delay,
    max_retry_delay = excluded.max_retry_delay, retry_backoff = excluded.retry_backoff, timeout = excluded.timeout,
    last_seen_at = clock_timestamp()
returning name
