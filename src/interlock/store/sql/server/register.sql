insert into /*schema*/server as s
    (id, name, app, roles, trains, tags, slots, host, pid, version, lease, lease_until, renewed_at, steady_since, started_at)
select :id, :name, :app, :roles, :trains, :tags, :slots, :host, :pid, :version, :lease::interval,
       t.now + :lease::interval, t.now, t.now, t.now
from (select clock_timestamp() as now) t
returning s.lease_until - clock_timestamp() as remaining
