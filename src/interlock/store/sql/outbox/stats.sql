-- Counts stop at a thousand per topic and state: who looks must not cost what is looked at.
with recursive topics as (
    /*include:outbox/_topics*/
), reviewed as (
    (
        select o.topic from /*schema*/outbox o where o.state in ('dead', 'needs_review') order by o.topic limit 1
    )
    union all
    select (
        select o.topic
        from /*schema*/outbox o
        where o.state in ('dead', 'needs_review') and o.topic > t.topic
        order by o.topic
        limit 1
    )
    from reviewed t
    where t.topic is not null
), named as (
    select topic from topics where topic is not null
    union
    select topic from reviewed where topic is not null
    union
    select topic from /*schema*/outbox_topic
)
select n.topic, ready.count as ready, ready.oldest as oldest_ready, later.count as later, later.claimed,
    ready.retrying + later.retrying as retrying, review.dead, review.needs_review, coalesce(b.parked, false) as parked, b.parked_by,
    coalesce(b.breaker, 'closed') as breaker, b.probe_at
from named n
left join /*schema*/outbox_topic b on b.topic = n.topic
cross join lateral (
    select count(*) as count, coalesce(:now::timestamptz, statement_timestamp()) - min(x.available_at) as oldest,
        count(*) filter (where x.attempts > 0) as retrying
    from (
        select o.available_at, o.attempts
        from /*schema*/outbox o
        where o.state = 'pending'
          and o.topic = n.topic
          and o.available_at <= coalesce(:now::timestamptz, statement_timestamp())
        order by o.available_at
        limit 1000
    ) x
) ready
cross join lateral (
    select count(*) as count, count(x.claim_token) as claimed, count(*) filter (where x.attempts > 0) as retrying
    from (
        select o.claim_token, o.attempts
        from /*schema*/outbox o
        where o.state = 'pending'
          and o.topic = n.topic
          and o.available_at > coalesce(:now::timestamptz, statement_timestamp())
        order by o.available_at
        limit 1000
    ) x
) later
cross join lateral (
    select count(*) filter (where x.state = 'dead') as dead,
        count(*) filter (where x.state = 'needs_review') as needs_review
    from (
        select o.state
        from /*schema*/outbox o
        where o.state in ('dead', 'needs_review')
          and o.topic = n.topic
        order by o.id
        limit 1000
    ) x
) review
order by n.topic
