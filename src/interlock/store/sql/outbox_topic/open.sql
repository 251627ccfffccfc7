-- The n-th opening in a row waits twice as long as the one before, up to a limit.
insert into /*schema*/outbox_topic as t (topic, breaker, failures, opened_at, probe_at)
values (:topic, 'open', 1, clock_timestamp(), clock_timestamp() + :pause::interval)
on conflict (topic) do update
set breaker = 'open',
    failures = t.failures + 1,
    opened_at = coalesce(t.opened_at, excluded.opened_at),
    probe_at = clock_timestamp() + least(:pause::interval * (2 ^ least(t.failures, 20)), :most::interval)
where t.breaker <> 'open'
returning probe_at - clock_timestamp() as pause
