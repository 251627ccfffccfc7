-- Asked to stop, past the timeout, and still running after the grace. A person's wish to cancel stands, whatever the
-- clock says.
-- Its entry is locked as well, if it holds a key, and its manifest, because the end of an execution writes to them; none
-- of them is waited for.
with unheeded as materialized (
    select e.id, e.entry_id, e.manifest_id, e.claim_token, e.cancel_cause
    from /*schema*/execution e
    where e.ended_at is null
      and e.state = 'in_progress'
      and e.cancel_requested_at + :grace::interval <= coalesce(:now, statement_timestamp())
      and e.started_at + e.timeout + :grace::interval <= coalesce(:now, statement_timestamp())
    order by e.id
    for update of e skip locked
),
entries as materialized (
    select q.id
    from /*schema*/work_queue q
    where q.id in (select entry_id from unheeded) and q.key_held
    order by q.id
    for update skip locked
),
manifests as materialized (
    select m.id
    from /*schema*/manifest m
    where m.id = any(array(select manifest_id from unheeded))
    order by m.id
    for no key update skip locked
)
select id, claim_token, cancel_cause
from unheeded
where not exists (
    select from /*schema*/work_queue q
    where q.id = unheeded.entry_id and q.key_held and q.id not in (select id from entries)
)
  and coalesce(
    (select m.id = any(array(select id from manifests)) from /*schema*/manifest m where m.id = unheeded.manifest_id), true
)
