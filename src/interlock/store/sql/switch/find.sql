select
    (select m.id from /*schema*/manifest m where m.external_id = :external_id) as manifest_id,
    (select g.id from /*schema*/manifest_group g where g.name = :group) as group_id
