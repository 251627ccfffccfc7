-- The marker of an edited manifest. It must run after the statement that holds the rows: only then does its snapshot
-- show what ended in the meantime, and a marker too few would lose a run.
update /*schema*/manifest m
set next_run_at = case
        when m.enabled
         and not exists (select from /*schema*/work_queue q
                         where q.manifest_id = m.id and q.state = 'queued' and q.kind <> 'manual')
         and not exists (select from /*schema*/execution e
                         where e.manifest_id = m.id and e.ended_at is null and e.kind <> 'manual')
         and not exists (select from /*schema*/dead_letter d
                         where d.manifest_id = m.id and d.state = 'awaiting_intervention' and d.kind <> 'manual')
        then m.planned_at
    end
where m.id = any(:ids::bigint[])
returning m.next_run_at
