select pg_advisory_xact_lock(hashtextextended(:name, 0))
