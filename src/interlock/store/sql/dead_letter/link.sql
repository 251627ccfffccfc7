update /*schema*/dead_letter d
set requeued_entry_id = link.entry_id
from unnest(:ids::bigint[], :entry_ids::bigint[]) as link (id, entry_id)
where d.id = link.id
  and d.state = 'retried'
