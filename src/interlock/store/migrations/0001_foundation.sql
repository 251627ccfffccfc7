-- oldest-code: 1

create table /*schema*/server (
    id uuid primary key,
    name text not null,
    app text,
    roles text[] not null,
    trains text[] not null,
    tags text[] not null,
    slots integer not null check (slots >= 0),
    host text not null,
    pid integer not null,
    version text not null,
    state text not null default 'alive' check (state in ('alive', 'draining', 'gone', 'lost')),
    lease interval not null check (lease > interval '0'),
    lease_until timestamptz not null,
    renewed_at timestamptz not null,
    steady_since timestamptz not null,
    started_at timestamptz not null,
    ended_at timestamptz,
    lost_by uuid
) with (fillfactor = 50);

-- Keyed by what a heartbeat does not change, so that every renewal stays a HOT update.
create index server_for_recovery on /*schema*/server (id) where state in ('alive', 'draining');
create index server_for_retention on /*schema*/server (ended_at) where state in ('gone', 'lost');
