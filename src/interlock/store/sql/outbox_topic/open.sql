-- The n-th opening in a row waits twice as long as the one before, up to a limit.
insert into /*schema*/outbox_topic as t (topic, breaker, failures, opened_at, probe_at)
select :topic, 'open', 1, m.now, m.now + :pause::interval
from (select coalesce(:now::timestamptz, clock_timestamp()) as now) m
on conflict (topic) do update
set breaker = 'open',
    failures = t.failures + 1,
    opened_at = coalesce(t.opened_at, excluded.opened_at),
    probe_at = excluded.opened_at + least(:pause::interval * (2 ^ least(t.failures, 20)), :most::interval)
where t.breaker <> 'open'
returning probe_at - coalesce(:now::timestamptz, clock_timestamp()) as pause
