select pg_try_advisory_xact_lock(hashtextextended(:name, 0))
