-- The first entry of the lineage that an execution or an entry belongs to.
select coalesce(
    (select e.first_entry_id from /*schema*/execution e where e.id = :execution_id::bigint),
    (select coalesce(w.first_entry_id, w.id) from /*schema*/work_queue w where w.id = :entry_id::bigint)
) as lineage
