insert into /*schema*/manifest_group (name)
select name from unnest(:names::text[]) as name order by name
on conflict (name) do nothing
returning id
