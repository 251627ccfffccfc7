select id, external_id, app, origin, declared
from /*schema*/manifest
where external_id = any(:external_ids::text[])
