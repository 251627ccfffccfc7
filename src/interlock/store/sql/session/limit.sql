-- Local to the transaction, so that it holds behind a transaction pooler too. The TCP timeout frees a leader that
-- stopped in the middle of a fetch: PostgreSQL then waits in a write, which no other timeout ends. By its name others
-- know a tick that no timeout ends at all (end_stalled).
select set_config('application_name', 'interlock tick', true),
       set_config('statement_timeout', :statement_timeout, true),
       set_config('lock_timeout', :statement_timeout, true),
       set_config('idle_in_transaction_session_timeout', :idle_timeout, true),
       set_config('tcp_user_timeout', :idle_timeout, true)
