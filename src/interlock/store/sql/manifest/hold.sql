-- The compare-and-set: a manifest whose marker changed since it was read is left to the next cycle, and so is one that
-- somebody holds, so that a leader never waits. What follows may look again at what blocks a manifest: whoever unblocks
-- it has either committed by then or waits for this lock.
select m.id
from unnest(:ids::bigint[], :markers::timestamptz[]) as read (id, marker)
join /*schema*/manifest m on m.id = read.id
where m.next_run_at = read.marker
order by m.id
for no key update of m skip locked
