-- Rows exist before they are needed: one that is inserted while it is taken would make others wait for its commit.
insert into /*schema*/lock_slot (namespace, name, slot)
select :namespace, :name, slot from generate_series(0, :slots::integer - 1) as slot
on conflict do nothing
