-- What becomes of message m of road r if it is claimed now, and from when on something else would.
case
    when m.expires_at <= coalesce(:now::timestamptz, statement_timestamp()) then 'expired'
    when m.crashed and m.crashes + 1 >= r.crash_limit then 'dead'
    when m.claims > 0 and m.first_emitted_at + r.idempotency_window
        <= coalesce(:now::timestamptz, statement_timestamp()) then 'needs_review'
    else 'pending'
end as verdict,
least(m.expires_at, case when m.claims > 0 then m.first_emitted_at + r.idempotency_window end) as good_until
