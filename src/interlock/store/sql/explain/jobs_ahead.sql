-- How many dispatched jobs a worker would claim first; before an entry that is not dispatched, all of them.
select count(*)
from (
    select j.group_priority, j.priority, j.created_at, j.entry_id
    from /*schema*/background_job j
    where j.train = any(:rivals::text[])
    order by j.group_priority desc, j.priority desc, j.created_at, j.entry_id
    limit :most::integer
) head
where :rank::integer is null
   or (-head.group_priority, -head.priority, head.created_at, head.entry_id)
    < (-:rank::integer, -:priority::integer, :created_at::timestamptz, :id::bigint)
