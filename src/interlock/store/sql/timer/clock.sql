select coalesce(:now::timestamptz, clock_timestamp())
