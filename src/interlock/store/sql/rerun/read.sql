select e.id, e.train, e.state, e.ended_at is not null as ended, e.input::text as input
from /*schema*/execution e
where e.id = :id
