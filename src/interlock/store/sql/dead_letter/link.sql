update /*schema*/dead_letter
set requeued_entry_id = :entry_id
where id = :id
  and state = 'retried'
