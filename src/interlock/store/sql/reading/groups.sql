-- Counts end at the cap: a queue of a million must not be read to say "many". What waits for a later time is read once
-- for all groups, because no index has it by group.
with delayed as materialized (
    select l.group_id, count(*) as entries
    from (select q.group_id from /*schema*/work_queue q
          where q.state = 'queued' and not q.ready limit 10 * :cap::integer) l
    group by l.group_id
)
select g.id, g.name, g.enabled, g.priority, g.max_active_jobs, g.declared::text as declared,
    (select count(*) from (select from /*schema*/manifest m where m.group_id = g.id limit :cap::integer) c) as manifests,
    (select count(*) from (select from /*schema*/execution e
                           where e.group_id = g.id and e.ended_at is null limit :cap::integer) c) as active,
    (select count(*) from (select from /*schema*/work_queue q
                           where q.group_id = g.id and q.state = 'queued' and q.ready limit :cap::integer) c) as ready,
    coalesce(delayed.entries, 0) as later
from /*schema*/manifest_group g
left join delayed on delayed.group_id = g.id
where :name::text is null or g.name = :name::text
order by g.name
