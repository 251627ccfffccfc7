-- How much waits, runs and ended lately, for people who watch. Every count is a range of an index and stops at the limit;
-- what ended is found train by train, one probe each, because the index begins with the train.
with recursive known as (
    (select e.train from /*schema*/execution e where e.ended_at is not null order by e.train limit 1)
    union all
    select following.train
    from known
    cross join lateral (
        select e.train
        from /*schema*/execution e
        where e.ended_at is not null
          and e.train > known.train
        order by e.train
        limit 1
    ) following
)
select coalesce(:now::timestamptz, statement_timestamp()) as now,
       (
           select count(*)
           from (select from /*schema*/work_queue where state = 'queued' and ready limit :most::integer) r
       ) as ready,
       (
           select count(*)
           from (select from /*schema*/work_queue where state = 'queued' and not ready limit :most::integer) d
       ) as delayed,
       (
           select count(*)
           from (
               select from /*schema*/execution where ended_at is null and state = 'pending' limit :most::integer
           ) p
       ) as pending,
       (
           select count(*)
           from (
               select from /*schema*/execution where ended_at is null and state = 'in_progress' limit :most::integer
           ) i
       ) as in_progress,
       (
           select count(*)
           from (
               select from /*schema*/dead_letter where state = 'awaiting_intervention' limit :most::integer
           ) l
       ) as dead_letters,
       coalesce(ended.completed, 0) as completed,
       coalesce(ended.failed, 0) as failed,
       coalesce(ended.other, 0) as other
from (select 1) one
left join lateral (
    select count(*) filter (where e.state = 'completed') as completed,
           count(*) filter (where e.state = 'failed') as failed,
           count(*) filter (where e.state not in ('completed', 'failed')) as other
    from known
    cross join lateral (
        select x.state
        from /*schema*/execution x
        where x.train = known.train
          and x.ended_at is not null
          and x.ended_at > coalesce(:now::timestamptz, statement_timestamp()) - :window::interval
        order by x.train, x.ended_at
        limit :most::integer
    ) e
) ended on true
