update /*schema*/timer t
set runs = t.runs + d.runs,
    failures = t.failures + d.failures,
    last_run_at = greatest(t.last_run_at, case when d.ago is not null then clock_timestamp() - d.ago end),
    last_host = case when d.ago is null then t.last_host else :host::text end,
    skips = t.skips || coalesce(
        (select jsonb_object_agg(s.reason, coalesce((t.skips ->> s.reason)::bigint, 0) + s.count::bigint)
         from jsonb_each_text(d.skips) as s (reason, count)), '{}'),
    lock_trouble = case
        when not d.lock_down then t.lock_trouble - :host::text
        else jsonb_build_object(:host::text, clock_timestamp()) || t.lock_trouble
    end,
    last_seen_at = clock_timestamp()
from unnest(:names::text[], :runs::bigint[], :failures::bigint[], :ago::interval[], :skips::text[]::jsonb[],
            :lock_downs::boolean[]) as d (name, runs, failures, ago, skips, lock_down)
where t.namespace = :namespace and t.name = d.name
returning t.name
