with served as materialized (
    select id from /*schema*/manifest_group where id = any (:ids::bigint[]) order by id for no key update skip locked
)
update /*schema*/manifest_group g
set last_queued_at = coalesce(:now, clock_timestamp())
from served
where g.id = served.id
