-- The claim passes from the server that submits to the one that runs. Whoever comes late, or a second time, finds another
-- token: after a requeue that of nobody, after a take-over that of the runner. A server that is not alive takes nothing.
update /*schema*/execution e
set state = 'in_progress', server_id = :server, host = :host, claim_token = :token,
    started_at = coalesce(:now::timestamptz, clock_timestamp())
where e.id = :id
  and e.claim_token = :submitted
  and e.state = 'pending'
  and e.train = :train
  and e.cancel_requested_at is null
  and exists (select from /*schema*/server s where s.id = :server and s.state = 'alive')
returning e.id, e.train, e.input::text, e.attempt, e.first_entry_id, e.timeout, e.started_at, e.manifest_id, e.fire_key,
    (select m.external_id from /*schema*/manifest m where m.id = e.manifest_id) as manifest,
    coalesce((select w.key_held from /*schema*/work_queue w where w.id = e.entry_id), false) as keyed
