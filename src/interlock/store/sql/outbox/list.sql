select id, message_id, topic, key, partition, state, available_at, expires_at, claimed_by, claimed_at,
    case when claim_token is not null then available_at end as claim_expires,
    claims, attempts, crashes, record_id, failure, error_message, out_of_order, published_at, ended_at
from /*schema*/outbox
where (:state::text is null or state = :state::text)
  and (:topic::text is null or topic = :topic::text)
  and (:before::bigint is null or id < :before::bigint)
order by id desc
limit :limit
