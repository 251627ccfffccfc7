-- A dependent that is new to its parent stands for the parent's last success, if there was one it has not consumed.
update /*schema*/manifest child
set planned_at = coalesce(:now::timestamptz, clock_timestamp()), updated_at = clock_timestamp()
from /*schema*/manifest parent
where child.id = any(:ids::bigint[])
  and child.schedule_kind = 'dependent'
  and parent.id = child.parent_id
  and parent.last_success_execution_id is distinct from child.consumed_execution_id
  and parent.last_success_execution_id is not null
returning child.id
