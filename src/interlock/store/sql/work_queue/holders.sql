select wanted.key, w.id, w.train, current_setting('transaction_isolation') as isolation
from unnest(:keys::text[]) as wanted (key)
left join lateral (
    select coalesce(w.first_entry_id, w.id) as id, w.train
    from /*schema*/work_queue w
    where w.key = wanted.key
      and w.key_held
    limit 1
) w on true
