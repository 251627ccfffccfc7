-- The trains are found by hopping through the index, one probe each, and each is asked for what is older than its own
-- retention: neither a train that keeps its history for years nor one that keeps it for minutes makes others be read.
-- Scalar subqueries inside coalesce look at one row each and are taken to keep half of the rows, so that the planner
-- walks the index in order, whatever the statistics say. A success that dependents look for stays, and so
-- does what an open dead letter names, because a person will want its traceback. What stays is not read again in every
-- pass: with a window, only what came of age within it is looked at. It is compared as a row, because the planner takes
-- two bounds of one column for a narrow range and would sort instead of walk.
with recursive own as (
    select name as train, retention from /*schema*/train where retention is not null
    union all
    select alias, t.retention from /*schema*/train t, unnest(t.aliases) alias where t.retention is not null
), ended (train) as (
    (select e.train from /*schema*/execution e where e.ended_at is not null order by e.train limit 1)
    union all
    select (select e.train from /*schema*/execution e
            where e.ended_at is not null and e.train > ended.train
            order by e.train limit 1)
    from ended
    where ended.train is not null
), kept as materialized (
    select ended.train,
           coalesce(:now::timestamptz, statement_timestamp())
               - coalesce((select max(own.retention) from own where own.train = ended.train), :older_than::interval) as since
    from ended
    where ended.train is not null
), old as materialized (
    select batch.id
    from kept
    cross join lateral (
        select e.id
        from /*schema*/execution e
        where e.ended_at is not null
          and e.train = kept.train
          and e.ended_at < kept.since
          and (e.train, e.ended_at) >= (kept.train, coalesce(kept.since - :window::interval, '-infinity'))
          and coalesce((select m.last_success_execution_id from /*schema*/manifest m where m.id = e.manifest_id) <> e.id,
                       true)
          and coalesce((select d.state <> 'awaiting_intervention' from /*schema*/dead_letter d
                        where d.execution_id = e.id and d.resolved_at is null limit 1), true)
        order by e.ended_at
        limit :limit
        for update skip locked
    ) batch
    limit :limit
)
delete from /*schema*/execution e where e.id = any(array(select id from old))
returning e.train
