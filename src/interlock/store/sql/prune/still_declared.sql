select id from /*schema*/manifest where external_id = any(:external_ids::text[])
