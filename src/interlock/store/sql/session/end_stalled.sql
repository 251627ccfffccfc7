-- A process that was stopped after the preparation of a statement and before its execution is neither idle nor busy in
-- PostgreSQL's eyes: no timeout before version 17 ends its transaction. So whoever lives does, to our own alone, after the
-- time that PostgreSQL grants to idle ones.
select pg_terminate_backend(a.pid)
from pg_stat_activity a
where a.datname = current_database()
  and a.usename = current_user
  and a.application_name in ('interlock tick', 'interlock transaction')
  and a.state = 'active'
  and a.wait_event = 'ClientRead'
  and a.state_change < clock_timestamp()
      - case a.application_name when 'interlock tick' then :idle_timeout::interval else :longest_standstill::interval end
  and a.pid <> pg_backend_pid()
