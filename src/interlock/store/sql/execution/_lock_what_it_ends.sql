-- What the end of an execution writes besides: its entry if that holds a key, and its manifest. Neither is waited for;
-- one row that a paused process holds would keep all the others.
entries as materialized (
    select q.id
    from /*schema*/work_queue q
    where q.id = any(array(select entry_id from found))
      and q.key_held
    order by q.id
    for update skip locked
),
manifests as materialized (
    select m.id
    from /*schema*/manifest m
    where m.id = any(array(select manifest_id from found))
    order by m.id
    for no key update skip locked
)
