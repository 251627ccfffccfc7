delete from /*schema*/declaration d
where not exists (select from /*schema*/server s where s.id = d.server_id and s.state in ('alive', 'draining'))
