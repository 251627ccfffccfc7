-- An entry is the record of its execution until that ends, and of a key for as long as it holds it.
with old as materialized (
    select q.id
    from /*schema*/work_queue q
    where q.state <> 'queued'
      and q.left_at < coalesce(:now::timestamptz, statement_timestamp()) - :older_than::interval
      and not q.key_held
      and not coalesce((select e.ended_at is null from /*schema*/execution e where e.id = q.execution_id), false)
    order by q.left_at
    limit :limit
    for update skip locked
)
delete from /*schema*/work_queue q where q.id = any(array(select id from old))
returning q.id
