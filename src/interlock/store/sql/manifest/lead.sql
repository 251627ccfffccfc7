-- The name is hashed to 64 bits and names the schema: two schemas in one database have a leader each.
select pg_try_advisory_xact_lock(hashtextextended('interlock manifests ' || :schema::text, 0))
