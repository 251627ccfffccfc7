-- Never waits: who does not get a lock leaves that group to the one who has it.
select scope.name, pg_try_advisory_xact_lock(hashtextextended(
    'interlock dispatch ' || :schema::text || ' ' || scope.name, 0
)) as locked
from unnest(:scopes::text[]) with ordinality as scope (name, place)
order by scope.place
