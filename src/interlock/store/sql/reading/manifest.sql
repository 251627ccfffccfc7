select m.id, m.external_id, m.app, m.origin, m.train, g.name as "group", g.enabled as group_enabled, m.schedule_kind,
    m.schedule::text as schedule, m.time_zone, m.exclusions::text as exclusions, m.variance, m.misfire,
    m.misfire_threshold, parent.external_id as parent, m.enabled, m.priority, m.max_attempts, m.retry_delay,
    m.max_retry_delay, m.retry_backoff, m.timeout, m.input::text as input, m.declared::text as declared, m.declared_at,
    m.planned_at, m.planned_offset, m.next_run_at, m.last_success_execution_id, m.last_success_at, m.last_resolved_at,
    m.consumed_execution_id, m.write_error, m.write_failures, m.write_retry_at, m.created_at, m.updated_at,
    array(select child.external_id from /*schema*/manifest child
          where child.parent_id = m.id order by child.external_id) as children,
    (select min(d.id) from /*schema*/dead_letter d
     where d.manifest_id = m.id and d.state = 'awaiting_intervention' and d.kind <> 'manual') as open_dead_letter_id
from /*schema*/manifest m
join /*schema*/manifest_group g on g.id = m.group_id
left join /*schema*/manifest parent on parent.id = m.parent_id
where m.external_id = :external_id::text
