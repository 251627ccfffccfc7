-- oldest-code: 1

-- A claim moves `available_at` to the end of its lease: a message whose worker died becomes due again by itself.
create table /*schema*/outbox (
    id bigint generated always as identity primary key,
    message_id text not null default gen_random_uuid()::text,
    topic text not null,
    payload jsonb not null,
    headers jsonb not null default '{}',
    key text,
    bucket smallint check (bucket between 0 and 1023),
    partition text,
    state text not null default 'pending'
        check (state in ('pending', 'delivered', 'dead', 'needs_review', 'expired')),
    available_at timestamptz not null default clock_timestamp(),
    expires_at timestamptz,
    claim_token uuid,
    claimed_by uuid,
    claimed_at timestamptz,
    claims integer not null default 0 check (claims >= 0),
    attempts integer not null default 0 check (attempts >= 0),
    crashes integer not null default 0 check (crashes >= 0),
    first_emitted_at timestamptz,
    record_id text,
    failure text,
    error_message text,
    out_of_order boolean not null default false,
    published_at timestamptz not null default clock_timestamp(),
    ended_at timestamptz,
    trace text,
    check ((key is null) = (bucket is null)),
    check ((state = 'pending') = (ended_at is null)),
    check (claim_token is null or state = 'pending')
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);

create unique index outbox_message_id on /*schema*/outbox (message_id);
create index outbox_for_claim on /*schema*/outbox (topic, available_at, id, partition) where state = 'pending';
create index outbox_for_lane on /*schema*/outbox (bucket, id) where state = 'pending' and key is not null;
create index outbox_for_unkeyed on /*schema*/outbox (topic, available_at, id) where state = 'pending' and key is null;
create index outbox_for_held_keys on /*schema*/outbox (key)
    where state in ('dead', 'needs_review') and key is not null;
create index outbox_for_review on /*schema*/outbox (topic, id) where state in ('dead', 'needs_review');
create index outbox_for_retention on /*schema*/outbox (ended_at) where ended_at is not null;

create table /*schema*/outbox_attempt (
    id bigint generated always as identity primary key,
    outbox_id bigint not null,
    topic text not null,
    attempt integer not null,
    host text,
    started_at timestamptz,
    ended_at timestamptz not null default clock_timestamp(),
    outcome text not null
        check (outcome in ('retry', 'snooze', 'dead', 'needs_review', 'crashed', 'stale', 'redriven')),
    error_type text,
    error_message text,
    record_id text,
    retry_at timestamptz
);

create index outbox_attempt_for_message on /*schema*/outbox_attempt (outbox_id, id);
create index outbox_attempt_for_doctor on /*schema*/outbox_attempt (ended_at);

create table /*schema*/outbox_topic (
    topic text primary key,
    parked boolean not null default false,
    parked_by text,
    parked_at timestamptz,
    breaker text not null default 'closed' check (breaker in ('closed', 'open', 'half_open')),
    failures integer not null default 0 check (failures >= 0),
    opened_at timestamptz,
    probe_at timestamptz,
    check ((breaker = 'closed') = (probe_at is null))
) with (fillfactor = 50);

create table /*schema*/inbox (
    consumer text not null,
    message_id text not null,
    handled_at timestamptz not null default clock_timestamp(),
    primary key (consumer, message_id)
);

create index inbox_for_retention on /*schema*/inbox (handled_at);
