select version, oldest_code from /*schema*/schema_version order by version desc limit 1
