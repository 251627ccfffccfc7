-- Of held manifests whose entry could not be added: a fire that has its entry is done with, and its plan moves on; that
-- run may be over, so the marker moves along. If it is another fire that is still queued, the plan stays, and the end of
-- that run brings the marker back.
update /*schema*/manifest m
set next_run_at = case when done.entry then w.planned_at end,
    planned_at = case when done.entry then w.planned_at else m.planned_at end,
    planned_offset = case when done.entry then w.planned_offset else m.planned_offset end,
    consumed_execution_id = case when done.entry then coalesce(w.consumed, m.consumed_execution_id)
                                 else m.consumed_execution_id end,
    updated_at = clock_timestamp()
from unnest(
    :ids::bigint[], :fire_keys::text[], :planned_at::timestamptz[], :planned_offsets::interval[], :consumed::bigint[]
) as w (id, fire_key, planned_at, planned_offset, consumed)
cross join lateral (
    select exists (
        select from /*schema*/work_queue q
        where q.manifest_id = w.id and q.fire_key = w.fire_key and q.kind = 'scheduled' and q.first_entry_id is null
    ) as entry
) done
where m.id = w.id
