update /*schema*/train
set paused = false, paused_by = null, paused_at = null
where name = :train
  and paused
returning name
