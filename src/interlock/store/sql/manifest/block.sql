-- Only manifests that are held. What blocks is looked at once more, after the lock: a run that ended since it was read
-- found the marker set and left the manifest as it was, and clearing the marker would lose the next run.
update /*schema*/manifest m
set next_run_at = null, updated_at = clock_timestamp()
where m.id = any (:ids::bigint[])
  and (
      not m.enabled
      or exists (
          select from /*schema*/work_queue q
          where q.manifest_id = m.id and q.state = 'queued' and q.kind <> 'manual'
      )
      or exists (
          select from /*schema*/execution e
          where e.manifest_id = m.id and e.ended_at is null and e.kind <> 'manual'
      )
      or exists (
          select from /*schema*/dead_letter d
          where d.manifest_id = m.id and d.state = 'awaiting_intervention' and d.kind <> 'manual'
      )
  )
returning m.id
