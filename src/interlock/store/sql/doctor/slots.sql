-- Lock names for which live holders disagree on how many slots there are: their settings contradict each other.
select s.name, min(s.slots) as narrowest, max(s.slots) as widest
from /*schema*/lock_slot s
where s.expires_at > statement_timestamp()
  and s.slots is not null
group by s.namespace, s.name
having min(s.slots) <> max(s.slots)
order by s.name
limit 20
