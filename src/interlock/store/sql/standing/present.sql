select statement_timestamp()
