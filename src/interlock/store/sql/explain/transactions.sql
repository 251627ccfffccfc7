-- Transactions that have been open for long and have locked something of ours. Of other users only those are seen that
-- this one may see.
select a.pid, a.usename::text as username, a.application_name as application, a.state,
       clock_timestamp() - a.xact_start as age
from pg_stat_activity a
where a.datname = current_database()
  and a.pid <> pg_backend_pid()
  and a.xact_start < clock_timestamp() - :older_than::interval
  and exists (
      select
      from pg_locks l
      join pg_class c on c.oid = l.relation
      join pg_namespace n on n.oid = c.relnamespace
      where l.pid = a.pid
        and l.granted
        and n.nspname = :schema::text
        and c.relkind = 'r'
        and l.mode <> 'AccessShareLock'
        and l.database = (select d.oid from pg_database d where d.datname = current_database())
  )
order by a.xact_start
limit 5
