-- Tried again and again, because a wait in PostgreSQL would be a statement without an end.
select pg_try_advisory_xact_lock(hashtextextended(:name, 0))
