-- What servers that ended still hold: what they ran, and what they had taken to submit and did not.
select e.id, e.claim_token, e.server_id
from /*schema*/server s
join /*schema*/execution e on e.server_id = s.id and e.state in ('pending', 'in_progress')
where s.state in ('lost', 'gone')
  and s.ended_at > statement_timestamp() - :within::interval
order by e.id
limit :limit
for update of e skip locked
