-- A parked topic is left alone, and so is one whose breaker is open until a probe is due.
select s.*,
    not coalesce(b.parked, false)
        and (coalesce(b.breaker, 'closed') = 'closed' or b.probe_at <= coalesce(:now::timestamptz, statement_timestamp()))
        as is_clear,
    coalesce(b.breaker, 'closed') <> 'closed' as probe
from served s
left join /*schema*/outbox_topic b on b.topic = s.topic
