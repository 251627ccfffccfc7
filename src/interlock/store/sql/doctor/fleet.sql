select s.name, s.app, s.version, s.state, s.roles, s.slots, s.started_at,
       statement_timestamp() - s.renewed_at as heartbeat_age,
       s.lease_until > statement_timestamp() as leased,
       statement_timestamp() - s.lease_until > s.lease * 3 as silent
from /*schema*/server s
where s.state in ('alive', 'draining')
order by s.name, s.started_at
limit 1000
