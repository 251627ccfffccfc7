-- Each topic with something pending, for one index probe; the walk ends in a NULL.
(select o.topic from /*schema*/outbox o where o.state = 'pending' order by o.topic limit 1)
union all
select (
    select o.topic from /*schema*/outbox o where o.state = 'pending' and o.topic > t.topic order by o.topic limit 1
)
from topics t
where t.topic is not null
