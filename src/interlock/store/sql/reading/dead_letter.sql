select d.input::text as input, e.traceback
from /*schema*/dead_letter d
left join /*schema*/execution e on e.id = d.execution_id
where d.id = :id::bigint
