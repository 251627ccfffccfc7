-- A train that was announced as it is, and lately, is not written again.
insert into /*schema*/train as t (name, aliases, app, group_id, input_schema)
select r.name, r.aliases, :app::text, r.group_id, r.input_schema
from jsonb_populate_recordset(null::/*schema*/train, :rows::jsonb) r
order by r.name
on conflict (name) do update
set aliases = excluded.aliases, app = excluded.app, group_id = excluded.group_id,
    input_schema = excluded.input_schema, last_seen_at = clock_timestamp()
where (t.aliases, t.app, t.group_id, t.input_schema)
        is distinct from (excluded.aliases, excluded.app, excluded.group_id, excluded.input_schema)
   or t.last_seen_at < statement_timestamp() - interval '1 hour'
returning t.name
