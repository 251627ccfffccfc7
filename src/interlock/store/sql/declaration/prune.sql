-- What is queued or runs stays until it ended, and so do all that it hangs on.
with recursive candidate as materialized (
    select c.id
    from unnest(:ids::bigint[]) as c (id)
    where not exists (select from /*schema*/work_queue q where q.manifest_id = c.id and q.state = 'queued')
      and not exists (select from /*schema*/execution e where e.manifest_id = c.id and e.ended_at is null)
), kept as (
    select m.parent_id as id
    from candidate c
    join /*schema*/manifest m on m.parent_id = c.id
    where not exists (select from candidate other where other.id = m.id)
    union
    select m.parent_id
    from kept k
    join /*schema*/manifest m on m.id = k.id
    where m.parent_id is not null
)
delete from /*schema*/manifest m
using candidate c
where m.id = c.id and not exists (select from kept k where k.id = m.id)
returning m.external_id
