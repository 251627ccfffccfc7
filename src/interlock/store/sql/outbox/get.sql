select id, message_id, topic, key, partition, state, available_at, expires_at, claimed_by, claimed_at,
    case when claim_token is not null then available_at end as claim_expires,
    claims, attempts, crashes, record_id, failure, error_message, out_of_order, published_at, ended_at,
    payload::text, headers::text, trace
from /*schema*/outbox
where id = :id::bigint or message_id = :message_id::text
limit 1
