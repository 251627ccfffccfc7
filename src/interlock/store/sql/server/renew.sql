-- A renewal that comes later than half a lease shows that this server could not reach the database: from then on it
-- has to be steady for a whole lease before it may judge others.
update /*schema*/server
set lease_until = clock_timestamp() + lease,
    renewed_at = clock_timestamp(),
    steady_since = case when clock_timestamp() - renewed_at > lease / 2 then clock_timestamp() else steady_since end
where id = :id and state in ('alive', 'draining')
returning lease_until - clock_timestamp() as remaining
