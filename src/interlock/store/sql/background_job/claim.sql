-- Jobs are locked in order, then their executions by id, both without waiting: what a cancel or a recovery holds is passed
-- over. Each step is a lookup by key, whatever the statistics say. A server that was marked lost, or drains, claims nothing.
with offered as materialized (
    select j.execution_id
    from /*schema*/background_job j
    where j.train = any(:trains::text[])
      and exists (select from /*schema*/server s where s.id = :server and s.state = 'alive')
    order by j.group_priority desc, j.priority desc, j.created_at, j.entry_id
    limit :limit
    for update skip locked
), claimable as materialized (
    select e.id
    from /*schema*/execution e
    where e.id = any(array(select execution_id from offered))
      and e.state = 'pending'
    for update skip locked
), taken as (
    delete from /*schema*/background_job
    where execution_id = any(array(select id from claimable))
)
update /*schema*/execution e
set state = 'in_progress', server_id = :server, host = :host, claim_token = :token,
    started_at = coalesce(:now::timestamptz, clock_timestamp())
where e.id = any(array(select id from claimable))
  and e.state = 'pending'
returning e.id, e.train, e.input, e.attempt, e.first_entry_id, e.timeout, e.started_at, e.manifest_id, e.fire_key,
    (select m.external_id from /*schema*/manifest m where m.id = e.manifest_id) as manifest,
    coalesce((select w.key_held from /*schema*/work_queue w where w.id = e.entry_id), false) as keyed
