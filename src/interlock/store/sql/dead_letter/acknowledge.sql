with chosen as materialized (
    select d.id
    from /*schema*/dead_letter d
    where d.id = any(:ids::bigint[])
      and d.state = 'awaiting_intervention'
    order by d.id
    for update
)
update /*schema*/dead_letter d
set state = 'acknowledged', resolved_at = coalesce(:now::timestamptz, clock_timestamp()), resolved_by = :actor,
    note = coalesce(:note, d.note)
from chosen
where d.id = chosen.id
  and d.state = 'awaiting_intervention'
returning d.id as dead_letter_id, d.manifest_id, d.kind
