select wanted.key, coalesce(w.first_entry_id, w.id) as id, w.train,
    current_setting('transaction_isolation') as isolation
from unnest(:keys::text[]) as wanted (key)
left join /*schema*/work_queue w on w.key = wanted.key and w.key_held
