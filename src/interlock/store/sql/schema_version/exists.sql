select exists (
    select from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = :schema and c.relname = 'schema_version'
)
