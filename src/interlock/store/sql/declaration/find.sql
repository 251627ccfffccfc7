-- One lookup in the unique index per name. With `= any(…)` a table that was filled a moment ago, and has no statistics
-- yet, may be read whole for every part of the list.
select m.id, m.external_id, m.app, m.origin, m.declared
from unnest(:external_ids::text[]) as wanted (external_id)
cross join lateral (
    select id, external_id, app, origin, declared
    from /*schema*/manifest
    where external_id = wanted.external_id
    limit 1
) m
