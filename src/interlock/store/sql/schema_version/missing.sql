select expected.name
from unnest(:names::text[]) as expected (name)
where not exists (
    select
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    left join pg_index i on i.indexrelid = c.oid
    where n.nspname = :schema and c.relname = expected.name and coalesce(i.indisvalid, true)
)
order by expected.name
