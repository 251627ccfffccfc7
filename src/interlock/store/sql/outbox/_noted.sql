-- What no worker will report, the crash before this claim or the end that it decided, is noted here.
insert into /*schema*/outbox_attempt (outbox_id, topic, attempt, host, started_at, outcome, error_message)
select id, topic, attempts + 1, :host::text, null, outcome, null
from claimed
cross join lateral (
    select 'crashed' as outcome where crashed
    union all
    select state where state in ('dead', 'needs_review')
) x
