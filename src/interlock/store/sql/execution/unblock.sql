-- What was blocked and is not any more gets its marker back. The caller holds these rows locked.
update /*schema*/manifest m
set next_run_at = m.planned_at, updated_at = coalesce(:now::timestamptz, clock_timestamp())
where m.id = any(:ids::bigint[])
  and m.enabled
  and m.planned_at is not null
  and m.next_run_at is null
  and not exists (
      select from /*schema*/work_queue w where w.manifest_id = m.id and w.state = 'queued' and w.kind <> 'manual'
  )
  and not exists (
      select from /*schema*/execution e
      where e.manifest_id = m.id and e.ended_at is null and e.kind <> 'manual'
  )
  and not exists (
      select from /*schema*/dead_letter d
      where d.manifest_id = m.id and d.state = 'awaiting_intervention' and d.kind <> 'manual'
  )
returning m.id, m.next_run_at <= coalesce(:now::timestamptz, statement_timestamp()) as due
