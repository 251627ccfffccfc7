-- For eyes only: it claims, locks and hides nothing, so two readers find the same messages.
select id, message_id, topic, key, partition, state, available_at, expires_at, claimed_by, claimed_at,
    case when claim_token is not null then available_at end as claim_expires,
    claims, attempts, crashes, record_id, failure, error_message, out_of_order, published_at, ended_at
from /*schema*/outbox
where state = 'pending'
  and available_at <= coalesce(:now::timestamptz, statement_timestamp())
  and (attempts > 0) = :retries::boolean
  and (:topic::text is null or topic = :topic::text)
order by available_at, id
limit :limit
