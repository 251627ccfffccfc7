-- What a server that is gone said about the lock service says nothing about now.
select t.name, t.app, t.schedule, t.max_concurrency, t.runs_per_tick, t.distributed, t.tick_at, t.tick_runs,
       t.last_run_at, t.last_host, t.runs, t.failures, t.skips, t.last_seen_at,
       statement_timestamp() - t.last_seen_at as unseen_for,
       coalesce(
           (select jsonb_object_agg(said.server, said.since)
            from jsonb_each_text(t.lock_trouble) as said (server, since)
            where exists (select from /*schema*/server s where s.name = said.server and s.state in ('alive', 'draining'))),
           '{}'
       ) as lock_trouble
from /*schema*/timer t
where t.namespace = :namespace and (t.name = :name or :name::text is null)
order by t.name
limit :limit
