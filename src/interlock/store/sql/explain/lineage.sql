-- The first entry of the work that an execution or an entry belongs to. An entry is deleted an hour after it left the
-- queue; its executions still know it if it was the first.
select coalesce(
    (select e.first_entry_id from /*schema*/execution e where e.id = :execution_id::bigint),
    (select coalesce(w.first_entry_id, w.id) from /*schema*/work_queue w where w.id = :entry_id::bigint),
    (select e.first_entry_id from /*schema*/execution e where e.first_entry_id = :entry_id::bigint limit 1)
) as lineage
