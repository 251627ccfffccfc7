-- One execution, or the latest of a lineage, with its holder and whether a worker could still claim it.
select e.id, e.state, e.kind, e.train, e.manifest_id, e.entry_id, e.group_id, e.attempt, e.max_attempts, e.created_at,
       e.started_at, e.ended_at, e.failure, e.error_type, e.submitter, e.cancel_requested_at, e.host,
       s.name as server, s.state as server_state,
       coalesce(s.state in ('alive', 'draining') and s.lease_until > statement_timestamp(), false) as held,
       statement_timestamp() - s.lease_until as lease_over, j.group_priority, j.priority,
       j.created_at as queued_at, j.execution_id is not null as offered,
       coalesce(
           (
               select d.id
               from /*schema*/dead_letter d
               where d.state = 'awaiting_intervention'
                 and (d.manifest_id is null or d.kind = 'manual')
                 and d.first_entry_id = e.first_entry_id
           ),
           (
               select d.id
               from /*schema*/dead_letter d
               where d.state = 'awaiting_intervention'
                 and d.kind <> 'manual'
                 and d.manifest_id = e.manifest_id
                 and d.first_entry_id = e.first_entry_id
           )
       ) as dead_letter_id
from /*schema*/execution e
left join /*schema*/server s on s.id = e.server_id
left join /*schema*/background_job j on j.execution_id = e.id
where e.id = coalesce(
    :id::bigint,
    (
        select latest.id
        from /*schema*/execution latest
        where latest.first_entry_id = :lineage::bigint
        order by latest.first_entry_id desc, latest.id desc
        limit 1
    )
)
