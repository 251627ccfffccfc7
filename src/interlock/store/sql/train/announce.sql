-- A train that was announced as it is, and lately, is not written again, nor even locked.
insert into /*schema*/train (name, aliases, app, group_id, input_schema, retention)
select r.name, r.aliases, :app::text, r.group_id, r.input_schema, r.retention
from jsonb_populate_recordset(null::/*schema*/train, :rows::jsonb) r
where not exists (
    select from /*schema*/train t
    where t.name = r.name
      and t.last_seen_at > statement_timestamp() - interval '1 hour'
      and (t.aliases, t.app, t.group_id, t.input_schema, t.retention)
            is not distinct from (r.aliases, :app::text, r.group_id, r.input_schema, r.retention))
order by r.name
on conflict (name) do update
set aliases = excluded.aliases, app = excluded.app, group_id = excluded.group_id,
    input_schema = excluded.input_schema, retention = excluded.retention,
    last_seen_at = clock_timestamp()
returning name
