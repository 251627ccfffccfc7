with succeeded as materialized (
    select manifest_id, max(execution_id) as execution_id
    from unnest(:manifest_ids::bigint[], :execution_ids::bigint[]) as x (manifest_id, execution_id)
    group by manifest_id
)
update /*schema*/manifest m
set last_success_execution_id = succeeded.execution_id,
    last_success_at = coalesce(:now::timestamptz, clock_timestamp()),
    updated_at = coalesce(:now::timestamptz, clock_timestamp())
from succeeded
where m.id = succeeded.manifest_id
