select t.train,
    coalesce(w.waiting, 0) as waiting,
    coalesce(e.running, 0) as running,
    coalesce(e.completed, 0) as completed,
    coalesce(e.failed, 0) as failed
from (select train from /*schema*/work_queue union select train from /*schema*/execution) t
left join (
    select train, count(*) as waiting from /*schema*/work_queue where state = 'queued' group by train
) w on w.train = t.train
left join (
    select train,
        count(*) filter (where ended_at is null) as running,
        count(*) filter (where state = 'completed') as completed,
        count(*) filter (where state = 'failed') as failed
    from /*schema*/execution
    group by train
) e on e.train = t.train
order by t.train
