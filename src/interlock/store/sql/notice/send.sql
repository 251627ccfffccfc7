select pg_notify(:channel, payload) from unnest(:payloads::text[]) as payload
