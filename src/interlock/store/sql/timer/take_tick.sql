-- At the start, so that a crash consumes the tick. Without a planned time the tick is the floor of the database's clock.
with tick as (
    select coalesce(
        :planned::timestamptz,
        to_timestamp(
            floor(
                extract(epoch from coalesce(:now::timestamptz, statement_timestamp()))
                / extract(epoch from :interval::interval)
            ) * extract(epoch from :interval::interval)
        )
    ) as at
)
update /*schema*/timer t
set tick_at = tick.at, tick_runs = case when t.tick_at = tick.at then t.tick_runs + 1 else 1 end
from tick
where t.namespace = :namespace and t.name = :name
  and (t.tick_at is null or t.tick_at < tick.at or (t.tick_at = tick.at and t.tick_runs < :runs_per_tick::integer))
returning t.tick_at
