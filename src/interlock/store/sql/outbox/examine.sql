-- The figures behind the checks of an outbox, of the last `window` and of the one before.
with moment as materialized (
    select coalesce(:now::timestamptz, statement_timestamp()) as now
), recent as materialized (
    select a.*, a.ended_at > moment.now - :window::interval as late
    from /*schema*/outbox_attempt a, moment
    where a.ended_at > moment.now - 2 * :window::interval
), ended as materialized (
    select o.topic, o.record_id
    from /*schema*/outbox o, moment
    where o.ended_at > moment.now - :window::interval
      and o.state = 'delivered'
    order by o.ended_at desc
    limit 10000
)
select
    (select count(*) from recent where late and outcome = 'stale') as stale,
    (select count(*) from ended) as delivered,
    (select count(*) from recent where late and error_type = 'Throttled') as throttled,
    (select count(*) from recent where late and outcome = 'retry') as retries,
    (select count(*) from recent where not late and outcome = 'retry') as retries_before,
    (select count(*) from recent where late and outcome in ('dead', 'needs_review')) as dead,
    (select count(*) from recent where not late and outcome in ('dead', 'needs_review')) as dead_before,
    -- A receiver that names its records for some messages and not for others is worth a look.
    (
        select array_agg(x.topic order by x.topic)
        from (
            select topic
            from ended
            group by topic
            having count(record_id) > 0 and count(*) > count(record_id)
        ) x
    ) as without_record,
    (
        select array_agg(distinct o.message_id)
        from recent r
        join /*schema*/outbox o on o.id = r.outbox_id
        where r.outcome = 'stale'
          and r.record_id is not null
          and o.record_id is not null
          and r.record_id <> o.record_id
    ) as two_records
