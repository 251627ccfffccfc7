-- A claim whose answer never arrived may have been committed. Its token tells.
select e.id, e.train, e.input, e.attempt, e.first_entry_id, e.timeout, e.started_at, e.manifest_id, e.fire_key,
    (select m.external_id from /*schema*/manifest m where m.id = e.manifest_id) as manifest,
    coalesce((select w.key_held from /*schema*/work_queue w where w.id = e.entry_id), false) as keyed
from /*schema*/execution e
where e.ended_at is null
  and e.server_id = :server
  and e.state = 'in_progress'
  and e.claim_token = :token
