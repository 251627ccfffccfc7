-- As for a tick, with more patience and without a limit for what is under way: a process that stands still in the middle
-- loses its locks. Local to the transaction.
select set_config('application_name', 'interlock transaction', true),
       set_config('idle_in_transaction_session_timeout', :idle_timeout, true),
       set_config('tcp_user_timeout', :idle_timeout, true)
