-- What has run for the longest, without payloads.
select e.id, e.train, m.external_id as manifest, e.state, e.host, e.attempt,
       coalesce(:now::timestamptz, statement_timestamp()) - coalesce(e.started_at, e.created_at) as age, e.junction
from /*schema*/execution e
left join /*schema*/manifest m on m.id = e.manifest_id
where e.ended_at is null
order by coalesce(e.started_at, e.created_at), e.id
limit 50
