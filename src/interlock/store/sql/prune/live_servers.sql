select count(*) from /*schema*/server where app = :app::text and state in ('alive', 'draining')
