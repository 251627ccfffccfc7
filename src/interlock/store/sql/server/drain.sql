update /*schema*/server set state = 'draining'
where id = :id and state = 'alive'
returning id
