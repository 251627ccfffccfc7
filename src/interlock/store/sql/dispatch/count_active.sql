-- A statement of its own: its snapshot is younger than the locks.
select group_id, count(*) as active, count(*) filter (where train <> all(:excluded::text[])) as counted
from /*schema*/execution
where ended_at is null
group by group_id
