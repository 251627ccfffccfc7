-- Job and execution are locked together and never waited for, so that a cancel or a recovery that holds one of them is
-- passed over. A server that was marked lost, or drains, claims nothing.
with claimable as materialized (
    select j.execution_id
    from /*schema*/background_job j
    join /*schema*/execution e on e.id = j.execution_id
    where j.train = any(:trains::text[])
      and e.state = 'pending'
      and exists (select from /*schema*/server s where s.id = :server and s.state = 'alive')
    order by j.group_priority desc, j.priority desc, j.created_at, j.entry_id
    limit :limit
    for update of j, e skip locked
), taken as (
    delete from /*schema*/background_job j
    using claimable
    where j.execution_id = claimable.execution_id
)
update /*schema*/execution e
set state = 'in_progress', server_id = :server, host = :host, claim_token = :token,
    started_at = coalesce(:now::timestamptz, clock_timestamp())
from claimable
where e.id = claimable.execution_id
  and e.state = 'pending'
returning e.id, e.train, e.input, e.attempt, e.first_entry_id, e.timeout, e.started_at, e.manifest_id, e.fire_key,
    (select m.external_id from /*schema*/manifest m where m.id = e.manifest_id) as manifest,
    coalesce((select w.key_held from /*schema*/work_queue w where w.id = e.entry_id), false) as keyed
