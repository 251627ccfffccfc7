select name from /*schema*/train where name <> '*' order by name
