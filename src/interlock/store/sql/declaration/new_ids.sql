-- Ids drawn beforehand let a child name its parent although both are inserted by the same statement.
select nextval(pg_get_serial_sequence(:table, 'id')) as id
from generate_series(1, :count::integer)
