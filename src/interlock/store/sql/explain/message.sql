-- A message with the road of its topic, what stands before it in its key, and who could deliver it.
select o.id, o.message_id, o.topic, o.key, o.partition, o.state, o.available_at, o.expires_at, o.claim_token is not null as claimed,
    coalesce((select s.name from /*schema*/server s where s.id = o.claimed_by), '') as claimed_by,
    o.attempts, o.crashes, o.failure, o.error_message, o.published_at, o.ended_at,
    coalesce(t.parked, false) as parked, t.parked_by, coalesce(t.breaker, 'closed') as breaker, t.probe_at,
    waiting.id as waiting_before, ended.id as ended_before, ended.state as ended_state,
    (
        select coalesce(jsonb_agg(s.tags), '[]')::text
        from /*schema*/server s
        where s.state = 'alive' and s.lease_until > statement_timestamp() and 'outbox' = any(s.roles)
    ) as drains
from /*schema*/outbox o
left join /*schema*/outbox_topic t on t.topic = o.topic
left join lateral (
    select p.id
    from /*schema*/outbox p
    where p.state = 'pending' and p.key is not null and p.bucket = o.bucket and p.key = o.key and p.id < o.id
    order by p.id
    limit 1
) waiting on true
left join lateral (
    select d.id, d.state
    from /*schema*/outbox d
    where d.state in ('dead', 'needs_review') and d.key = o.key and d.id < o.id
    order by d.id
    limit 1
) ended on true
where o.id = :id::bigint or o.message_id = :message_id::text
limit 1
