-- A closed road is tried by one claim at a time: whoever gets here first has it for a lease.
update /*schema*/outbox_topic b
set breaker = 'half_open', probe_at = clock_timestamp() + :lease::interval
from (
    select b.topic
    from /*schema*/outbox_topic b
    join served on served.topic = b.topic
    where b.breaker <> 'closed'
      and not b.parked
      and b.probe_at <= statement_timestamp()
    for update of b skip locked
) due
where b.topic = due.topic
returning b.topic
