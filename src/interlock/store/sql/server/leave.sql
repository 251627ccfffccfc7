-- Only a draining server leaves: `drain` comes first, also when there is nothing to wait for.
update /*schema*/server set state = 'gone', ended_at = clock_timestamp()
where id = :id and state = 'draining'
returning id
