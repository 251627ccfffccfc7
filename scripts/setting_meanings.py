"""What each option means, in one line; the reference page is written from it, and refuses to miss one."""

from __future__ import annotations

MEANINGS = {
    # store
    "dsn": "the database, as `postgresql://user:password@host:port/database`; `DATABASE_URL` is read too, but weaker;"
    " none: an embedded PostgreSQL",
    "schema": "the schema that holds the tables",
    "schema_apply": "`auto`: a starting server applies pending migrations; `never`: it refuses to start instead",
    "pool_size": "connections in the pool of a process; a client opens one beside it, a server up to seven",
    "statement_cache_size": "prepared statements per connection; none: the driver's choice; 0: behind a pooler",
    "tick_statement_timeout": "PostgreSQL ends a statement of a tick that takes longer",
    "tick_idle_timeout": "PostgreSQL ends a tick whose process stands still for longer, others after ten times this",
    # runtime
    "name": "the app's name; an app without one never prunes manifests",
    "server_name": "what this server is called, stable between restarts; none: the host's name",
    "lease": "how long a server is believed to live after its last heartbeat",
    "heartbeat": "how often the lease is renewed; at most a third of it",
    "recovery_interval": "how often each server looks for lost ones",
    "shutdown_timeout": "how long running work may go on after SIGTERM before it is cancelled",
    # manifests
    "manifest_manager_polling_interval": "how often due manifests are looked for when nothing wakes the manager",
    "max_work_queue_entries_per_cycle": "how many entries one cycle queues, fair to the groups; none: 5,000 a cycle",
    "dependent_priority_boost": "added to the priority of work that follows another manifest",
    "max_attempts": "how often work runs in all before it becomes a dead letter",
    "retry_delay": "the wait before the second attempt",
    "retry_backoff": "each further wait is this much longer than the one before",
    "max_retry_delay": "no wait is longer",
    "default_job_timeout": "work that runs longer is asked to stop, and fails; it uses an attempt",
    "stale_pending_timeout": "work that was handed to another system and not taken over within this time fails",
    "stale_in_progress_timeout": "work without a live server fails after this time; must exceed the job timeout",
    "misfire": "a fire time that was missed by more than the threshold: run once now, or skip it",
    "misfire_threshold": "how late a fire may be without counting as missed",
    "prune_orphaned_manifests": "a manifest that the code of a named app no longer declares is removed",
    # dispatch
    "job_dispatcher_polling_interval": "how often the queue is looked at when nothing wakes the dispatcher",
    "max_active_jobs": "how much may be active in the whole fleet; none: as much as the workers have slots",
    "max_queued_jobs_per_cycle": "how many entries one cycle offers to those who claim; none: all that fit",
    "max_concurrent_dispatch": "how many entries are handed to another system at once; must stay below `pool_size`",
    "max_dispatch_attempts": "how often a hand-over to another system is tried again; 0: the first failure is final",
    "exclude_from_max_active_jobs": "trains that do not count in `max_active_jobs`",
    "max_input_bytes": "an input that is larger is refused when it is enqueued",
    # worker
    "worker_polling_interval": "how often jobs are looked for when nothing wakes the worker",
    "worker_slots": "how many jobs one worker runs at once",
    "worker_tags": "the tags of this worker; a train that asks for tags runs only where all of them are",
    "max_crashes": "how many servers a piece of work may take down before it becomes a dead letter",
    "max_output_bytes": "an output that is larger fails its execution",
    "settle_window": "how long an outcome may wait for others, to be written with them",
    "runner_secret": "what a runner and those who submit to it share; a runner does not start without it",
    # upkeep
    "execution_retention": "how long ended executions are kept; the last success of a manifest stays",
    "dead_letter_retention": "how long resolved dead letters are kept",
    "audit_retention": "how long the audit keeps who did what; none: for ever",
    "cleanup_interval": "how often old rows are deleted",
    "cleanup_batch": "how many rows one delete takes at most",
    # locks
    "lock_backend": "where lock slots live",
    "redis_url": "the Redis or Valkey server of the lock backend `redis`",
    "lock_namespace": "keeps the locks of several apps apart; none: the app's name, or `default`",
    "lock_ttl": "how long a lock outlives a holder that stopped answering",
    # timers
    "timers_distributed": "whether timers count their runs across the fleet, or in each process alone",
    # outbox
    "outbox_enabled": "whether this process delivers messages; web replicas may only publish",
    "outbox_topics": "the topics that this process delivers, such as `order.*`; none: all that it has emitters for",
    "outbox_partitions": "the partitions that this process delivers; none: all, and messages without one",
    "outbox_mode": "`claim`: many workers, no order; `ordered`: in order per key; `single`: in order, one lane",
    "outbox_lanes": "how many lanes share the keys in the mode `ordered`",
    "outbox_batch_size": "how many messages one claim takes",
    "outbox_polling_interval": "how often messages are looked for when nothing wakes the drain",
    "outbox_lease": "how long a claimed message belongs to its worker",
    "outbox_emit_timeout": "how long one delivery may take; must be below the lease",
    "outbox_max_attempts": "how often a message is tried before it is dead",
    "outbox_max_crashes": "how many workers a message may take down before it is dead",
    "outbox_concurrency": "how many messages one worker delivers at once",
    "outbox_idempotency_window": "how long receivers remember a message id; a retry that comes later waits for review",
    "outbox_retention": "how long delivered messages are kept",
    "outbox_expected_workers": "how many workers should serve each partition; another number is told. None: any",
}
SHORTHANDS = {"polling_interval": "sets `manifest_manager_polling_interval` and `job_dispatcher_polling_interval`"}
OF_THE_MACHINE = {
    "INTERLOCK_HOME": "the folder of the embedded databases, one for each project folder",
    "INTERLOCK_EMBEDDED_FOLDER": "the folder of this very embedded database",
    "INTERLOCK_EMBEDDED_USER": "the account that runs the embedded PostgreSQL when it is started by root",
}
