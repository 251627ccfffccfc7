with chosen as materialized (
    select w.id
    from /*schema*/work_queue w
    where w.state = 'queued'
      and (
          w.id = :lineage::bigint
          or w.first_entry_id = :lineage::bigint
          or w.manifest_id = :manifest_id::bigint
          or w.group_id = :group_id::bigint
      )
    order by w.id
    for update
)
update /*schema*/work_queue w
set state = 'cancelled', left_at = coalesce(:now::timestamptz, clock_timestamp()), key_held = false
from chosen
where w.id = chosen.id
  and w.state = 'queued'
returning w.id, coalesce(w.first_entry_id, w.id) as lineage, w.manifest_id, w.kind
