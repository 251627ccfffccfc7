-- A dependent that is blocked gets its marker all the same: the manager looks once, finds the reason and clears it, and
-- the plan stays until what blocks is over.
update /*schema*/manifest m
set planned_at = coalesce(m.planned_at, :now::timestamptz, clock_timestamp()),
    next_run_at = case when m.enabled then coalesce(m.next_run_at, m.planned_at, :now::timestamptz, clock_timestamp()) end,
    updated_at = coalesce(:now::timestamptz, clock_timestamp())
where m.parent_id = any(:succeeded::bigint[])
  and m.schedule_kind = 'dependent'
returning m.id
