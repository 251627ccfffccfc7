-- Answers a row only to the holder.
update /*schema*/execution
set junction = :junction, junction_index = :index, junction_total = :total
where id = :id
  and claim_token = :token
  and state = 'in_progress'
returning cancel_cause
