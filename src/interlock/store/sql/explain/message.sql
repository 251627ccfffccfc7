-- A message with the road of its topic, the first message of its key that stands before it, and who could deliver it.
select o.id, o.message_id, o.topic, o.key, o.state, o.available_at, o.expires_at, o.claim_token is not null as claimed,
    coalesce((select s.name from /*schema*/server s where s.id = o.claimed_by), '') as claimed_by,
    o.attempts, o.crashes, o.failure, o.error_message, o.published_at, o.ended_at,
    coalesce(t.parked, false) as parked, t.parked_by, coalesce(t.breaker, 'closed') as breaker, t.probe_at,
    before.id as before_id, before.state as before_state,
    (
        select count(*)::integer
        from /*schema*/server s
        where s.state = 'alive' and s.lease_until > statement_timestamp() and 'outbox' = any(s.roles)
    ) as drains
from /*schema*/outbox o
left join /*schema*/outbox_topic t on t.topic = o.topic
left join lateral (
    select b.id, b.state
    from (
        (
            select p.id, p.state
            from /*schema*/outbox p
            where p.state = 'pending' and p.key is not null and p.bucket = o.bucket and p.key = o.key and p.id < o.id
            order by p.id
            limit 1
        )
        union all
        (
            select d.id, d.state
            from /*schema*/outbox d
            where d.state in ('dead', 'needs_review') and d.key = o.key and d.id < o.id
            order by d.id
            limit 1
        )
    ) b
    order by b.id
    limit 1
) before on true
where o.id = :id::bigint or o.message_id = :message_id::text
limit 1
