not exists (
    select from /*schema*/work_queue q
    where q.id = found.entry_id and q.key_held and q.id not in (select id from entries)
)
and coalesce(
    (select m.id = any(array(select id from manifests)) from /*schema*/manifest m where m.id = found.manifest_id), true
)
