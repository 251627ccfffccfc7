-- A job appears and goes in the transaction that changes its execution, so one without an active execution is a mistake.
with orphans as materialized (
    select j.execution_id
    from /*schema*/background_job j
    where not coalesce((select e.ended_at is null from /*schema*/execution e where e.id = j.execution_id), false)
    limit :limit
    for update skip locked
)
delete from /*schema*/background_job j where j.execution_id = any(array(select execution_id from orphans))
returning j.execution_id
