-- Only manifests that are held, which have nothing to wait for: no plan, or no success of their parent that is new.
update /*schema*/manifest m
set next_run_at = null, planned_at = null, planned_offset = '0', updated_at = clock_timestamp()
where m.id = any (:ids::bigint[])
returning m.id
