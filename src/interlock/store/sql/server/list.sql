select id, name, app, roles, trains, tags, slots, host, pid, version, state, started_at, ended_at, renewed_at,
       statement_timestamp() - renewed_at as heartbeat_age,
       state in ('alive', 'draining') and lease_until > statement_timestamp() as leased
from /*schema*/server
where state in ('alive', 'draining') or :all::boolean
order by started_at, id
limit :limit
