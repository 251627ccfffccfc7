-- What somebody takes or gives back right now, or holds in a transaction, is locked already and counts as held.
select slot
from /*schema*/lock_slot
where namespace = :namespace and name = :name and expires_at <= statement_timestamp()
order by slot
for update skip locked
