insert into /*schema*/audit (actor, via, action, target_kind, target, before, after, note)
select :actor::text, :via::text, a.action, a.target_kind, a.target, a.before::jsonb, a.after::jsonb, :note::text
from unnest(:actions::text[], :target_kinds::text[], :targets::text[], :befores::text[], :afters::text[])
    with ordinality as a (action, target_kind, target, before, after, place)
order by a.place
