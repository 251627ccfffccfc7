update /*schema*/outbox_topic
set breaker = 'closed', failures = 0, opened_at = null, probe_at = null
where topic = :topic
  and breaker <> 'closed'
returning topic
