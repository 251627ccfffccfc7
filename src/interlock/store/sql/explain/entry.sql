-- One entry, or the latest of a lineage, with how the attempt before it ended. No payload.
select w.id, w.state, w.kind, w.train, w.manifest_id, w.attempt, w.max_attempts, w.submits, w.group_id,
       coalesce(g.priority, w.group_priority) as group_priority, w.priority, w.created_at, w.scheduled_at, w.ready,
       w.left_at, w.failure, w.previous_execution_id, p.state as previous_state, p.failure as previous_failure,
       left(p.error_message, 300) as previous_error
from /*schema*/work_queue w
left join /*schema*/manifest_group g on g.id = w.group_id
left join /*schema*/execution p on p.id = w.previous_execution_id
where w.id = coalesce(
    :id::bigint,
    (
        select max(of_lineage.id)
        from (
            select first.id from /*schema*/work_queue first where first.id = :lineage::bigint
            union all
            select later.id from /*schema*/work_queue later where later.first_entry_id = :lineage::bigint
        ) of_lineage
    )
)
