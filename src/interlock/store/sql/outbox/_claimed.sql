-- The picked messages, each with its verdict: claimed by this server, or ended. They are locked, so still pending, and
-- looked up by number alone: asked for the state as well, a plan made while little was pending walks all that is.
update /*schema*/outbox o
set state = p.verdict,
    crashes = o.crashes + p.crashed::integer,
    claim_token = case when p.verdict = 'pending' then :token::uuid end,
    claimed_by = :server::uuid,
    claimed_at = m.at,
    claims = o.claims + (p.verdict = 'pending')::integer,
    available_at = case when p.verdict = 'pending' then m.at + :lease::interval else o.available_at end,
    first_emitted_at = coalesce(o.first_emitted_at, coalesce(:now::timestamptz, clock_timestamp())),
    failure = case p.verdict
        when 'dead' then 'crash_loop' when 'needs_review' then 'window_passed' when 'expired' then 'expired'
        else o.failure end,
    ended_at = case when p.verdict <> 'pending' then coalesce(:now::timestamptz, clock_timestamp()) end
from picked p
cross join moment m
where o.id = p.id
  and o.id = any(array(select id from picked))
returning o.*, p.crashed, p.probe, p.good_until
