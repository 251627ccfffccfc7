-- Offered to nobody yet. Only what is not there: a conflict with a row that a transaction holds would wait for its end.
insert into /*schema*/lock_slot (namespace, name, slot)
select :namespace::text, :name::text, n from generate_series(0, :slots::integer - 1) as n
where not exists (
    select from /*schema*/lock_slot where namespace = :namespace::text and name = :name::text and slot = n
)
on conflict do nothing
