-- What is stored under these ids, and whatever else the app has declared.
select m.external_id, m.app, m.origin, m.enabled, m.declared::text as declared
from /*schema*/manifest m
where m.external_id = any(:external_ids::text[])
   or (m.app = :app::text and m.origin = 'declared')
order by m.external_id
