with change as materialized (
    select (item ->> 'id')::bigint as id, item -> 'columns' as columns, item -> 'declared' as declared
    from jsonb_array_elements(:changes::jsonb) item
), held as materialized (
    select g.id
    from /*schema*/manifest_group g
    join change on change.id = g.id
    order by g.id
    for update of g
)
update /*schema*/manifest_group g
set (enabled, priority, max_active_jobs) = (
        select r.enabled, r.priority, r.max_active_jobs from jsonb_populate_record(g, change.columns) r),
    declared = change.declared,
    updated_at = clock_timestamp()
from change, held
where g.id = change.id and held.id = g.id
