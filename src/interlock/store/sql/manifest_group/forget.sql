delete from /*schema*/manifest_group g
where g.name <> 'default'
  and g.declared = '{}'
  and not exists (select from /*schema*/manifest m where m.group_id = g.id)
  and not exists (select from /*schema*/train t where t.group_id = g.id)
  and not exists (select from /*schema*/work_queue q where q.group_id = g.id and q.state = 'queued')
  and not exists (select from /*schema*/execution e
                  where e.group_id = g.id and e.ended_at is null)
returning g.name
