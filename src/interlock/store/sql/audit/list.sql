-- The latest first. A count of zero rows costs nothing, so a page that does not ask for the total passes a cap of 0.
with matching as not materialized (
    select a.*
    from /*schema*/audit a
    where (:target_kind::text is null or a.target_kind = :target_kind::text)
      and (:target::text is null or a.target = :target::text)
      and (:actor::text is null or a.actor = :actor::text)
      and (:action::text is null or a.action = :action::text)
)
select m.id, m.at, m.actor, m.via, m.action, m.target_kind, m.target, m.before::text, m.after::text, m.note,
    (select count(*) from (select from matching limit :cap::integer) capped) as total
from matching m
where :before::bigint is null or m.id < :before::bigint
order by m.id desc
limit :limit::integer
