-- Dead rows as the statistics count them: no table is read.
select s.relname::text as table, s.n_dead_tup as dead, s.n_live_tup as live, s.last_autovacuum
from pg_stat_all_tables s
where s.schemaname = :schema::text
order by s.n_dead_tup desc
