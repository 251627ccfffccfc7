select e.id, e.state, e.train, e.attempt, e.crashes, e.host, e.failure, e.error_message, e.server_id,
    m.external_id as manifest,
    (select q.scheduled_at - e.ended_at from /*schema*/work_queue q where q.previous_execution_id = e.id limit 1) as retry_in,
    (select d.id from /*schema*/dead_letter d where d.execution_id = e.id limit 1) as dead_letter_id
from /*schema*/execution e
left join /*schema*/manifest m on m.id = e.manifest_id
where e.id >= :from_id
order by e.id
limit :limit
