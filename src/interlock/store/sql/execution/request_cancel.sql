-- A request of a person outlives one for a timeout: what a person stopped is not tried again.
with chosen as materialized (
    select e.id
    from /*schema*/execution e
    where e.ended_at is null
      and (
          e.first_entry_id = :lineage::bigint
          or e.manifest_id = :manifest_id::bigint
          or e.group_id = :group_id::bigint
      )
    order by e.id
    for update
)
update /*schema*/execution e
set cancel_requested_at = coalesce(e.cancel_requested_at, :now::timestamptz, clock_timestamp()),
    cancel_cause = 'person', cancel_actor = :actor
from chosen
where e.id = chosen.id
returning e.id, e.state, e.claim_token
