insert into /*schema*/declaration (server_id, app, external_ids, digest)
values (:server_id, :app, :external_ids::text[], md5(:external_ids::text[]::text))
on conflict (server_id) do update set external_ids = excluded.external_ids, digest = excluded.digest
