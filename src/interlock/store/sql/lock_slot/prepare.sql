-- Rows exist before they are needed: one that is inserted while it is taken would make others wait for its commit.
-- Of two who make a new name at once, the one that made slot 0 makes them all: its N and no other is offered.
with first as (
    insert into /*schema*/lock_slot (namespace, name, slot, slots)
    select :namespace::text, :name::text, 0, :slots::integer
    where not exists (select from /*schema*/lock_slot where namespace = :namespace::text and name = :name::text)
    on conflict do nothing
    returning slot
)
insert into /*schema*/lock_slot (namespace, name, slot, slots)
select :namespace::text, :name::text, n, :slots::integer from first, generate_series(1, :slots::integer - 1) as n
on conflict do nothing
