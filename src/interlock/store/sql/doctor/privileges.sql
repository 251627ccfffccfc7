-- What this user may not do and has to. A schema that it may not use hides its tables.
select 'schema ' || n.nspname as object, 'usage' as privilege
from pg_namespace n
where n.nspname = :schema::text
  and not has_schema_privilege(n.oid, 'usage')
union all
select 'table ' || c.relname, needed.privilege
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
cross join unnest(array['select', 'insert', 'update', 'delete']) as needed (privilege)
where n.nspname = :schema::text
  and c.relkind in ('r', 'p')
  and c.relname <> 'schema_version'
  and not has_table_privilege(c.oid, needed.privilege)
union all
select 'table schema_version', 'select'
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where n.nspname = :schema::text
  and c.relname = 'schema_version'
  and not has_table_privilege(c.oid, 'select')
union all
select 'sequence ' || c.relname, 'usage'
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where n.nspname = :schema::text
  and case when c.relkind = 'S' then not has_sequence_privilege(c.oid, 'usage') else false end
order by 1, 2
