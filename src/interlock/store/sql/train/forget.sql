-- Long unseen, by no live server known, not paused by anybody.
delete from /*schema*/train t
where t.last_seen_at < statement_timestamp() - :older_than::interval
  and not t.paused
  and t.name <> '*'
  and not exists (select from /*schema*/server s
                  where s.state in ('alive', 'draining') and t.name = any(s.trains))
returning t.name
