with due as materialized (
    select id
    from /*schema*/work_queue
    where state = 'queued'
      and not ready
      and scheduled_at <= coalesce(:now::timestamptz, statement_timestamp())
    order by scheduled_at, id
    limit :limit
    for update skip locked
)
update /*schema*/work_queue
set ready = true
where id = any(array(select id from due))
  and state = 'queued'
returning id
