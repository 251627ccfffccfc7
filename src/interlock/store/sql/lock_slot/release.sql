-- The slot may be meant to stay taken for a while after a short hold.
update /*schema*/lock_slot
set token = null, server_id = null,
    expires_at = greatest(statement_timestamp(), acquired_at + :at_least::interval)
where namespace = :namespace and name = :name and token = :token and expires_at > statement_timestamp()
returning slot
