-- Answers a row only to the holder. Held until the end of the transaction, so that what it does is done as the holder.
select e.id
from /*schema*/execution e
where e.id = :id
  and e.claim_token = :token
  and e.state = 'in_progress'
for share
