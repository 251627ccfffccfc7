-- Locked entries become executions that this server's worker holds already: its slots are free, so there is nobody to offer
-- them to. A server that is not alive any more takes nothing, and the entries stay where they are.
with chosen as materialized (
    select w.*, taken.place, nextval(:sequence::text::regclass) as new_execution_id,
        coalesce(:now::timestamptz, clock_timestamp()) as moment
    from unnest(:ids::bigint[]) with ordinality as taken (id, place)
    join /*schema*/work_queue w on w.id = taken.id
    where w.state = 'queued'
      and exists (select from /*schema*/server s where s.id = :server and s.state = 'alive')
), executed as (
    /*include:dispatch/_executed*/
), marked as (
    /*include:dispatch/_marked*/
)
select c.new_execution_id, c.train, c.input::text, c.attempt, coalesce(c.first_entry_id, c.id), c.timeout, c.moment,
    c.manifest_id, c.fire_key, (select m.external_id from /*schema*/manifest m where m.id = c.manifest_id), c.key_held,
    c.id as entry_id
from chosen c
order by c.place
