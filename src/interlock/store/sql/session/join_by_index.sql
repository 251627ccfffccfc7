-- Queues are planned when they are small and used when they are large: a cached plan that reads a table whole, because it
-- had one page then, would cost a hundred times as much a minute later. Where a small table has no index to offer it is
-- still read whole; the penalty on that looks so dear that PostgreSQL would compile the plan, hence no JIT. Local to the
-- transaction.
select set_config('application_name', 'interlock tick', true),
       set_config('statement_timeout', :statement_timeout, true),
       set_config('lock_timeout', :statement_timeout, true),
       set_config('idle_in_transaction_session_timeout', :idle_timeout, true),
       set_config('tcp_user_timeout', :idle_timeout, true),
       set_config('enable_seqscan', 'off', true),
       set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true),
       set_config('jit', 'off', true)
