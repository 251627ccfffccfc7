-- Back to where any worker may claim them, as if they had not been claimed: the same attempt, no failure. What somebody
-- asked to cancel meanwhile is not handed on. What was submitted here gets no job: it runs only where it is submitted to.
with released as (
    update /*schema*/execution e
    set state = 'pending', server_id = null, host = null, claim_token = null, started_at = null,
        junction = null, junction_index = null, junction_total = null
    from unnest(:ids::bigint[], :tokens::uuid[]) as held (id, token)
    where e.id = held.id
      and e.claim_token = held.token
      and e.state = 'in_progress'
      and e.cancel_requested_at is null
    returning e.id, e.entry_id, e.train, e.created_at, e.submitter
), offered as (
    insert into /*schema*/background_job (execution_id, train, group_priority, priority, created_at, entry_id)
    select released.id, released.train, coalesce(w.group_priority, 0), coalesce(w.priority, 0),
        coalesce(w.created_at, released.created_at), released.entry_id
    from released
    left join /*schema*/work_queue w on w.id = released.entry_id
    where released.submitter is null
)
select id, submitter is not null as submitted
from released
