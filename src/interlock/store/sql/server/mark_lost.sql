-- After an outage every lease looks expired though every server lives. So nobody is judged until one full lease has
-- passed since PostgreSQL started, and since the judge itself could renew without a gap. A gap that lasts until now has
-- not been noted by a renewal yet, so the age of the judge's last one counts too.
with expired as materialized (
    select s.id
    from /*schema*/server s
    join /*schema*/server judge on judge.id = :judge
    where s.state in ('alive', 'draining')
      and s.id <> judge.id
      and s.lease_until < statement_timestamp()
      and judge.state in ('alive', 'draining')
      and judge.lease_until > statement_timestamp()
      and judge.renewed_at + judge.lease / 2 > statement_timestamp()
      and judge.steady_since + s.lease < statement_timestamp()
      and pg_postmaster_start_time() + s.lease < statement_timestamp()
    order by s.id
    for update of s skip locked
)
update /*schema*/server s
set state = 'lost', ended_at = clock_timestamp(), lost_by = :judge
from expired
where s.id = expired.id
returning s.id, s.name
