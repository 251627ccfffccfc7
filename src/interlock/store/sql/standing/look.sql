select
    (select max(id) from /*schema*/work_queue) as last_entry,
    (select count(*) from /*schema*/work_queue where state = 'queued') as queued,
    (select max(id) from /*schema*/execution) as last_execution,
    (select count(*) from /*schema*/execution where ended_at is null) as active,
    (select count(*) from /*schema*/background_job) as claimable,
    (select max(id) from /*schema*/dead_letter) as last_dead_letter,
    (select count(*) from /*schema*/manifest where next_run_at is not null) as marked,
    (select max(updated_at) from /*schema*/manifest) as last_change
