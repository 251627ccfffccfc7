-- Who drains now: the live servers with the role, and the partitions that their tags name.
select id, name, tags
from /*schema*/server
where state = 'alive'
  and 'outbox' = any(roles)
order by name, id
