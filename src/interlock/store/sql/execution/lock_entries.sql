-- Entries before executions: the one order in which rows are locked.
select w.id
from /*schema*/work_queue w
where w.id in (select e.entry_id from /*schema*/execution e where e.id = any(:ids::bigint[]))
  and w.key_held
order by w.id
for update
