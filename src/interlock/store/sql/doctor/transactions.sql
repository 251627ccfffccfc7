-- What keeps dead rows from being removed: transactions of any database that have been open for long, and prepared ones.
select 'backend ' || a.pid as what, coalesce(a.application_name, '') as application, a.state,
       clock_timestamp() - a.xact_start as age, 'select pg_terminate_backend(' || a.pid || ')' as remedy
from pg_stat_activity a
where a.pid <> pg_backend_pid()
  and a.backend_type = 'client backend'
  and a.xact_start < clock_timestamp() - :older_than::interval
union all
select 'prepared transaction ' || p.gid, p.owner::text, 'prepared', clock_timestamp() - p.prepared,
       'rollback prepared ' || quote_literal(p.gid)
from pg_prepared_xacts p
where p.prepared < clock_timestamp() - :older_than::interval
order by age desc
limit 10
