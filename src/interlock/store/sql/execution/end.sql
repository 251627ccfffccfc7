with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
), ending as materialized (
    select *
    from unnest(
        :ids::bigint[], :tokens::uuid[], :states::text[], :outputs::jsonb[], :failures::text[], :error_types::text[],
        :error_messages::text[], :tracebacks::text[], :junctions::text[], :retry_afters::interval[]
    ) as x (id, token, state, output, failure, error_type, error_message, traceback, junction, retry_after)
), ended as (
    update /*schema*/execution e
    -- A snooze after which nothing comes, because a person asked for the end meanwhile, is the end.
    set state = case when x.state = 'snoozed' and e.cancel_cause = 'person' then 'cancelled' else x.state end,
        ended_at = moment.now, output = x.output, failure = x.failure, error_type = x.error_type,
        error_message = case
            when x.state = 'snoozed' and e.cancel_cause = 'person' then 'cancelled on request'
            else x.error_message
        end,
        traceback = x.traceback, junction = coalesce(x.junction, e.junction)
    from ending x, moment
    where e.id = x.id
      and e.claim_token is not distinct from x.token
      and (e.state = 'in_progress' or (e.state = 'pending' and x.state in ('failed', 'cancelled')))
    returning e.*, x.retry_after, moment.now,
        -- A server that was lost before the work began has not crashed with it.
        e.crashes + coalesce(x.failure = 'worker_lost' and e.started_at is not null, false)::integer as losses,
        case
            when x.state = 'snoozed' and e.cancel_cause is distinct from 'person' then 'snooze'
            when x.state <> 'failed' then 'nothing'
            when x.failure = 'submit_failed' then 'submit_failed'
            when x.failure = 'worker_lost' and e.started_at is not null and e.crashes + 1 >= e.max_crashes
                then 'crash_loop'
            when x.failure <> 'worker_lost' and e.attempt >= e.max_attempts then 'max_attempts'
            when e.cancel_cause = 'person' then 'nothing'
            when x.failure = 'worker_lost' then 'requeue'
            else 'retry'
        end as follows
), unclaimed as (
    delete from /*schema*/background_job j
    using ended
    where j.execution_id = ended.id
), freed as (
    update /*schema*/work_queue w
    set key_held = false
    from ended
    where w.id = ended.entry_id
      and w.key_held
    returning w.id, w.key
), planned as (
    select ended.*,
        case ended.follows
            when 'snooze' then ended.now + coalesce(ended.retry_after, interval '0')
            when 'retry' then ended.now + coalesce(
                ended.retry_after,
                -- The exponent is held down, because a power that no number can hold would fail the whole batch.
                make_interval(secs => least(
                    extract(epoch from ended.retry_delay)::float8
                        * exp(least((ended.attempt - 1) * ln(ended.retry_backoff::float8), 40)),
                    extract(epoch from ended.max_retry_delay)::float8
                ))
            )
            else ended.now
        end as scheduled_at
    from ended
    where ended.follows in ('retry', 'requeue', 'snooze')
), queued as (
    -- Reading what `freed` returns makes the old row let go of the key before the new one takes it.
    insert into /*schema*/work_queue (
        kind, train, input, manifest_id, fire_key, attempt, crashes, max_attempts, max_crashes, retry_delay,
        max_retry_delay, retry_backoff, timeout, group_id, group_priority, priority, created_at, scheduled_at, ready,
        key, key_held, first_entry_id, previous_execution_id, caused_by_execution_id, dead_letter_id, trace
    )
    select p.kind, p.train, p.input, p.manifest_id, p.fire_key, p.attempt + (p.follows = 'retry')::integer, p.losses,
        p.max_attempts, p.max_crashes, p.retry_delay, p.max_retry_delay, p.retry_backoff, p.timeout, p.group_id,
        coalesce(g.priority, w.group_priority, 0), coalesce(w.priority, 0),
        case when p.follows = 'requeue' then coalesce(w.created_at, p.created_at) else p.now end,
        p.scheduled_at, p.scheduled_at <= p.now, freed.key, freed.key is not null, p.first_entry_id, p.id,
        w.caused_by_execution_id, w.dead_letter_id, w.trace
    from planned p
    left join freed on freed.id = p.entry_id
    left join /*schema*/work_queue w on w.id = p.entry_id
    left join /*schema*/manifest_group g on g.id = p.group_id
    returning id, previous_execution_id, scheduled_at
), dead as (
    insert into /*schema*/dead_letter (
        reason, kind, train, input, manifest_id, external_id, first_entry_id, execution_id, group_id, priority, attempts,
        crashes, failure, junction, error_type, error_message, created_at
    )
    select ended.follows, ended.kind, ended.train, ended.input, ended.manifest_id, m.external_id, ended.first_entry_id,
        ended.id, ended.group_id, coalesce(w.priority, 0), ended.attempt, ended.losses, ended.failure, ended.junction,
        ended.error_type, ended.error_message, ended.now
    from ended
    left join /*schema*/work_queue w on w.id = ended.entry_id
    left join /*schema*/manifest m on m.id = ended.manifest_id
    where ended.follows in ('max_attempts', 'crash_loop', 'submit_failed')
    on conflict do nothing
    returning id, execution_id, reason
)
select ended.id, ended.state, ended.train, ended.attempt, ended.first_entry_id, ended.manifest_id, ended.kind,
    m.external_id as manifest, ended.failure, queued.id as retry_entry_id, queued.scheduled_at as retry_at,
    queued.scheduled_at - ended.now as retry_in,
    dead.id as dead_letter_id, dead.reason as dead_letter_reason
from ended
left join queued on queued.previous_execution_id = ended.id
left join dead on dead.execution_id = ended.id
left join /*schema*/manifest m on m.id = ended.manifest_id
