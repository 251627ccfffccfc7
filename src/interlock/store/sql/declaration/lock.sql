-- Released by the end of the transaction, so that a pooled connection cannot leak it.
select pg_advisory_xact_lock(hashtextextended(:name, 0))
