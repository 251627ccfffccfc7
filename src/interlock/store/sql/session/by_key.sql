-- For a connection that only ever looks rows up by key. A plan that was made while a table was empty reads it as a whole,
-- and stays in use until the table is analyzed, however large it has grown by then. With these settings one plan fits all
-- values, so it is made once; the penalties look so dear that PostgreSQL would compile it, hence no JIT. A bitmap would read
-- all that match where the first few in order are wanted. What is skipped because others hold it must not be an error only
-- because the default of a database is a snapshot that outlives the statement.
select set_config('enable_seqscan', 'off', false), set_config('enable_hashjoin', 'off', false),
    set_config('enable_mergejoin', 'off', false), set_config('enable_bitmapscan', 'off', false),
    set_config('jit', 'off', false),
    set_config('plan_cache_mode', 'force_generic_plan', false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('tcp_user_timeout', :idle_timeout, false)
