select current_setting('server_version_num')::integer as version,
       current_setting('server_version') as version_text,
       current_setting('max_connections')::integer as max_connections,
       current_setting('autovacuum')::boolean and current_setting('track_counts')::boolean as autovacuum,
       pg_is_in_recovery() or current_setting('default_transaction_read_only')::boolean as read_only,
       pg_backend_pid() as backend,
       current_user::text as username,
       clock_timestamp() as clock
