-- Local to the transaction, so that it holds behind a transaction pooler too. The TCP timeout frees a leader that
-- stopped in the middle of a fetch: PostgreSQL then waits in a write, which no other timeout ends.
select set_config('statement_timeout', :statement_timeout, true),
       set_config('lock_timeout', :statement_timeout, true),
       set_config('idle_in_transaction_session_timeout', :idle_timeout, true),
       set_config('tcp_user_timeout', :idle_timeout, true)
