-- Only manifests that are held, which have nothing to wait for: no plan, or no success of their parent that is new. A
-- success that came since they were read has another number, and then the marker stays.
update /*schema*/manifest m
set next_run_at = null, planned_at = null, planned_offset = '0', updated_at = clock_timestamp()
from unnest(:ids::bigint[], :parent_success_ids::bigint[]) as read (id, parent_success_id)
where m.id = read.id
  and not exists (
      select from /*schema*/manifest parent
      where parent.id = m.parent_id
        and parent.last_success_execution_id is distinct from read.parent_success_id
  )
returning m.id
