-- The compare-and-set: a manifest that changed since it was read is left to the next cycle, and so is one that somebody
-- holds, so that a leader never waits. The version is compared as well as the marker: an edit, or another success of the
-- parent, may leave the marker with the very value that was read.
select m.id
from unnest(:ids::bigint[], :markers::timestamptz[], :versions::text[]) as read (id, marker, version)
join /*schema*/manifest m on m.id = read.id
where m.next_run_at = read.marker
  and m.xmin::text = read.version
order by m.id
for no key update of m skip locked
