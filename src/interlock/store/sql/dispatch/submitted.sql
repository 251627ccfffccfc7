-- From now on the work belongs to whoever it was submitted to: the lease of this server says nothing about it any more.
update /*schema*/execution
set server_id = null, claim_token = null
where id = :id
  and claim_token = :token
  and state = 'pending'
returning id
