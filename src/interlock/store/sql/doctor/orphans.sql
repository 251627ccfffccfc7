-- Jobs whose execution nobody will claim any more, and executions that wait for a claim without a job; none in a healthy
-- system. Only what is dispatched is read.
select
    (
        select count(*)
        from (
            select from /*schema*/background_job j
            where not exists (
                select from /*schema*/execution e
                where e.id = j.execution_id and e.ended_at is null and e.state = 'pending'
            )
            limit :most::integer
        ) jobs
    ) as jobs,
    (
        select count(*)
        from (
            select from /*schema*/execution e
            where e.ended_at is null
              and e.state = 'pending'
              and e.server_id is null
              and e.submitter is null
              and e.created_at < statement_timestamp() - interval '1 minute'
              and not exists (select from /*schema*/background_job j where j.execution_id = e.id)
            limit :most::integer
        ) executions
    ) as executions
