-- A train of that name, else one that had it before a rename.
select t.name, g.name as "group", t.input_schema::text as input_schema
from /*schema*/train t
left join /*schema*/manifest_group g on g.id = t.group_id
where (t.name = :name::text or :name::text = any(t.aliases))
  and t.name <> '*'
order by t.name <> :name::text, t.name
limit 1
