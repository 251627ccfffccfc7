-- A train of that name, else one that had it before a rename.
select t.name, g.name as "group", t.input_schema::text as input_schema, t.priority, t.max_attempts, t.retry_delay,
    t.max_retry_delay, t.retry_backoff, t.timeout, t.aliases
from /*schema*/train t
left join /*schema*/manifest_group g on g.id = t.group_id
where (t.name = :name::text or :name::text = any(t.aliases))
  and t.name <> '*'
order by t.name <> :name::text, t.name
limit 1
