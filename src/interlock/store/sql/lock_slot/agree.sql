-- One at a time, and only those who want another N: whoever waits here looks at the slots in a later statement, and so
-- sees what the one before has done.
select pg_advisory_xact_lock(hashtextextended('interlock slots ' || :namespace::text || ' ' || :name::text, 0))
