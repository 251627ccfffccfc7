-- How long until something of these topics may be claimed: a delay, a retry, the end of a lost worker's claim, a probe.
with recursive topics as (
    /*include:outbox/_topics*/
)
select min(
    case
        when b.parked then null
        when b.probe_at > coalesce(:now::timestamptz, statement_timestamp()) then b.probe_at
        else n.available_at
    end
) - coalesce(:now::timestamptz, statement_timestamp()) as wait
from topics t
left join lateral (
    select o.available_at
    from /*schema*/outbox o
    where o.state = 'pending'
      and o.topic = t.topic
      and o.available_at > coalesce(:now::timestamptz, statement_timestamp())
    order by o.available_at
    limit 1
) n on true
left join /*schema*/outbox_topic b on b.topic = t.topic
where exists (select from unnest(:patterns::text[]) as p (pattern) where t.topic ~ p.pattern)
