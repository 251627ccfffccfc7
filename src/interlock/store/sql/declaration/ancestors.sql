with recursive ancestor as (
    select m.external_id, m.parent_id, 0 as depth, array[m.id] as path
    from /*schema*/manifest m
    where m.external_id = :external_id
    union all
    select m.external_id, m.parent_id, a.depth + 1, a.path || m.id
    from ancestor a
    join /*schema*/manifest m on m.id = a.parent_id
    where m.id <> all(a.path)
)
select external_id from ancestor order by depth
