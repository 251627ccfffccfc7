-- oldest-code: 1

create table /*schema*/manifest_group (
    id bigint generated always as identity primary key,
    name text not null constraint manifest_group_name unique,
    enabled boolean not null default true,
    priority smallint not null default 0 check (priority between 0 and 31),
    max_active_jobs integer check (max_active_jobs >= 1),
    declared jsonb not null default '{}',
    last_queued_at timestamptz,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp()
);
insert into /*schema*/manifest_group (name) values ('default');

create table /*schema*/manifest (
    id bigint generated always as identity primary key,
    external_id text not null constraint manifest_external_id unique,
    app text,
    origin text not null check (origin in ('declared', 'runtime')),
    declared jsonb not null default '{}',
    declared_at timestamptz,
    train text not null,
    input jsonb not null,
    group_id bigint not null references /*schema*/manifest_group,
    schedule_kind text not null
        check (schedule_kind in ('every', 'cron', 'once', 'dependent', 'dormant', 'manual')),
    schedule jsonb not null,
    time_zone text not null default 'UTC',
    exclusions jsonb not null default '[]',
    variance interval not null default '0' check (variance >= interval '0'),
    misfire text not null check (misfire in ('fire_once', 'skip')),
    misfire_threshold interval not null check (misfire_threshold >= interval '0'),
    parent_id bigint references /*schema*/manifest,
    enabled boolean not null default true,
    priority smallint check (priority between 0 and 63),
    max_attempts integer check (max_attempts >= 1),
    retry_delay interval,
    max_retry_delay interval,
    retry_backoff real check (retry_backoff >= 1),
    timeout interval check (timeout > interval '0'),
    planned_at timestamptz,
    planned_offset interval not null default '0' check (planned_offset >= interval '0'),
    next_run_at timestamptz,
    last_success_execution_id bigint,
    last_success_at timestamptz,
    last_resolved_at timestamptz,
    consumed_execution_id bigint,
    write_error text,
    write_failures integer not null default 0,
    write_retry_at timestamptz,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    check ((schedule_kind in ('dependent', 'dormant')) = (parent_id is not null)),
    check ((origin = 'declared') = (declared_at is not null)),
    check ((write_error is null) = (write_retry_at is null))
) with (fillfactor = 80);

create index manifest_for_due on /*schema*/manifest (group_id, next_run_at) where next_run_at is not null;
create index manifest_for_children on /*schema*/manifest (parent_id) where parent_id is not null;
create index manifest_for_sweep on /*schema*/manifest (planned_at)
    where next_run_at is null and planned_at is not null and enabled;
create index manifest_for_prune on /*schema*/manifest (app, external_id) where origin = 'declared';
create index manifest_for_group on /*schema*/manifest (group_id);

create table /*schema*/work_queue (
    id bigint generated always as identity primary key,
    state text not null default 'queued' check (state in ('queued', 'dispatched', 'cancelled', 'failed')),
    kind text not null check (kind in ('scheduled', 'manual', 'requeue', 'dormant', 'adhoc')),
    train text not null,
    input jsonb not null,
    manifest_id bigint,
    fire_key text,
    attempt integer not null check (attempt >= 1),
    crashes integer not null default 0 check (crashes >= 0),
    submits integer not null default 0 check (submits >= 0),
    max_attempts integer not null check (max_attempts >= 1),
    max_crashes integer not null check (max_crashes >= 0),
    retry_delay interval not null,
    max_retry_delay interval not null,
    retry_backoff real not null check (retry_backoff >= 1),
    timeout interval check (timeout > interval '0'),
    group_id bigint not null,
    group_priority smallint not null check (group_priority between 0 and 31),
    priority smallint not null check (priority between 0 and 63),
    created_at timestamptz not null default clock_timestamp(),
    scheduled_at timestamptz not null default clock_timestamp(),
    ready boolean not null,
    key text,
    key_held boolean not null default false,
    first_entry_id bigint,
    previous_execution_id bigint,
    caused_by_execution_id bigint,
    dead_letter_id bigint,
    execution_id bigint,
    left_at timestamptz,
    failure text,
    trace text,
    check (kind not in ('scheduled', 'dormant') or manifest_id is not null),
    check (kind <> 'scheduled' or fire_key is not null),
    check (not key_held or (key is not null and state in ('queued', 'dispatched'))),
    check ((state = 'queued') = (left_at is null))
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 50000);

create index work_queue_for_dispatch
    on /*schema*/work_queue (group_id, train, priority desc, created_at, id)
    where state = 'queued' and ready;
create index work_queue_for_ready on /*schema*/work_queue (scheduled_at, id) where state = 'queued' and not ready;
create unique index work_queue_one_queued_fire on /*schema*/work_queue (manifest_id)
    where state = 'queued' and kind = 'scheduled' and first_entry_id is null;
create unique index work_queue_one_entry_per_fire on /*schema*/work_queue (manifest_id, fire_key)
    where kind = 'scheduled' and first_entry_id is null;
create unique index work_queue_holds_key on /*schema*/work_queue (key) where key_held;
create index work_queue_for_manifest on /*schema*/work_queue (manifest_id)
    where state = 'queued' and manifest_id is not null;
create index work_queue_for_lineage on /*schema*/work_queue (first_entry_id) where first_entry_id is not null;
create index work_queue_for_retention on /*schema*/work_queue (left_at) where state <> 'queued';

create table /*schema*/execution (
    id bigint generated always as identity primary key,
    state text not null default 'pending'
        check (state in ('pending', 'in_progress', 'completed', 'failed', 'cancelled', 'snoozed')),
    entry_id bigint not null,
    first_entry_id bigint not null,
    previous_execution_id bigint,
    kind text not null check (kind in ('scheduled', 'manual', 'requeue', 'dormant', 'adhoc')),
    train text not null,
    input jsonb not null,
    manifest_id bigint,
    fire_key text,
    group_id bigint not null,
    attempt integer not null check (attempt >= 1),
    crashes integer not null check (crashes >= 0),
    max_attempts integer not null,
    max_crashes integer not null,
    retry_delay interval not null,
    max_retry_delay interval not null,
    retry_backoff real not null,
    timeout interval,
    submitter text,
    server_id uuid,
    host text,
    claim_token uuid,
    created_at timestamptz not null default clock_timestamp(),
    started_at timestamptz,
    ended_at timestamptz,
    junction text,
    junction_index integer,
    junction_total integer,
    cancel_requested_at timestamptz,
    cancel_cause text check (cancel_cause in ('timeout', 'person')),
    cancel_actor text,
    output jsonb,
    failure text check (failure in ('error', 'timeout', 'worker_lost', 'stale_pending', 'stale_in_progress',
                                    'submit_failed', 'invalid_input', 'invalid_output')),
    error_type text,
    error_message text,
    traceback text,
    trace text,
    check ((state in ('pending', 'in_progress')) = (ended_at is null)),
    check (state <> 'in_progress'
           or (server_id is not null and claim_token is not null and started_at is not null)),
    check ((state = 'failed') = (failure is not null)),
    check ((cancel_requested_at is null) = (cancel_cause is null)),
    check (output is null or state = 'completed')
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 50000);

create index execution_for_capacity on /*schema*/execution (group_id, train) where ended_at is null;
create index execution_for_manifest on /*schema*/execution (manifest_id, id) where manifest_id is not null;
create index execution_for_failures on /*schema*/execution (manifest_id, ended_at)
    where failure is not null and manifest_id is not null;
create index execution_for_active_manifest on /*schema*/execution (manifest_id)
    where ended_at is null and manifest_id is not null;
create index execution_for_reaping on /*schema*/execution (ended_at)
    where failure is not null and attempt >= max_attempts and manifest_id is not null;
create index execution_for_lineage on /*schema*/execution (first_entry_id, id);
create index execution_for_retention on /*schema*/execution (train, ended_at) where ended_at is not null;

create table /*schema*/background_job (
    execution_id bigint primary key,
    train text not null,
    group_priority smallint not null,
    priority smallint not null,
    created_at timestamptz not null,
    entry_id bigint not null
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

create index background_job_for_claim
    on /*schema*/background_job (group_priority desc, priority desc, created_at, entry_id, train);

create table /*schema*/dead_letter (
    id bigint generated always as identity primary key,
    state text not null default 'awaiting_intervention'
        check (state in ('awaiting_intervention', 'retried', 'acknowledged')),
    reason text not null check (reason in ('max_attempts', 'crash_loop', 'submit_failed')),
    kind text not null check (kind in ('scheduled', 'manual', 'requeue', 'dormant', 'adhoc')),
    train text not null,
    input jsonb not null,
    manifest_id bigint,
    external_id text,
    first_entry_id bigint not null,
    execution_id bigint,
    group_id bigint not null,
    priority smallint not null,
    attempts integer not null,
    crashes integer not null default 0,
    failure text,
    junction text,
    error_type text,
    error_message text,
    created_at timestamptz not null default clock_timestamp(),
    resolved_at timestamptz,
    resolved_by text,
    note text,
    requeued_entry_id bigint,
    check ((state = 'awaiting_intervention') = (resolved_at is null)),
    check (requeued_entry_id is null or state = 'retried')
);

create unique index dead_letter_one_open_per_manifest
    on /*schema*/dead_letter (manifest_id, (case when kind = 'dormant' then first_entry_id else 0 end))
    where state = 'awaiting_intervention' and manifest_id is not null and kind <> 'manual';
create unique index dead_letter_one_open_per_lineage on /*schema*/dead_letter (first_entry_id)
    where state = 'awaiting_intervention' and (manifest_id is null or kind = 'manual');
create index dead_letter_for_review on /*schema*/dead_letter (id) where state = 'awaiting_intervention';
create index dead_letter_for_retention on /*schema*/dead_letter (resolved_at) where resolved_at is not null;
create index dead_letter_for_execution on /*schema*/dead_letter (execution_id) where execution_id is not null;

create table /*schema*/train (
    name text primary key,
    aliases text[] not null default '{}',
    app text,
    group_id bigint references /*schema*/manifest_group,
    input_schema jsonb not null default '{}',
    retention interval check (retention > interval '0'),
    priority smallint check (priority between 0 and 63),
    max_attempts integer check (max_attempts >= 1),
    retry_delay interval,
    max_retry_delay interval,
    retry_backoff real check (retry_backoff >= 1),
    timeout interval check (timeout > interval '0'),
    paused boolean not null default false,
    paused_by text,
    paused_at timestamptz,
    last_seen_at timestamptz not null default clock_timestamp()
);

create table /*schema*/declaration (
    server_id uuid primary key,
    app text not null,
    external_ids text[] not null,
    digest text not null,
    announced_at timestamptz not null default clock_timestamp()
);

create table /*schema*/audit (
    id bigint generated always as identity primary key,
    at timestamptz not null default clock_timestamp(),
    actor text not null,
    via text not null check (via in ('cli', 'web', 'api', 'code')),
    action text not null,
    target_kind text not null,
    target text not null,
    before jsonb,
    after jsonb,
    note text
);

create index audit_for_target on /*schema*/audit (target_kind, target, id);
