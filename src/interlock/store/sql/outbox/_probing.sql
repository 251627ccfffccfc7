-- A closed road is tried by one claim at a time, and only by one that has a message to deliver: whoever gets here first
-- has it for a lease.
update /*schema*/outbox_topic b
set breaker = 'half_open', probe_at = coalesce(:now::timestamptz, clock_timestamp()) + :lease::interval
from (
    select b.topic
    from /*schema*/outbox_topic b
    where b.topic = any(array(select topic from chosen where probe and verdict = 'pending'))
      and b.breaker <> 'closed'
      and not b.parked
      and b.probe_at <= coalesce(:now::timestamptz, statement_timestamp())
    for update of b skip locked
) due
where b.topic = due.topic
returning b.topic
