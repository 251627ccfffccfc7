"""One manifest written at run time: checked and written like a declared one, and never pruned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from interlock.errors import UnknownManifest
from interlock.manifests.graph import refuse_cycle
from interlock.manifests.write import Writer, worded
from interlock.model.manifest import Origin
from interlock.store.declaration import DeclaredManifests, declaring
from interlock.store.manifest_group import ManifestGroups
from interlock.store.notify import notify_in

if TYPE_CHECKING:
    from interlock.manifests.write import Written
    from interlock.model.manifest import ManifestDeclaration
    from interlock.runtime.clock import Clock
    from interlock.store.connection import Connection
    from interlock.store.database import Database

Outcome = Literal["created", "changed", "unchanged"]


async def put_manifest(
    database: Database, declaration: ManifestDeclaration, *, app: str | None, clock: Clock
) -> Outcome:
    """Create the manifest, or change what is said of it differently."""
    words = worded([declaration])
    rows, groups = DeclaredManifests(database.sql), ManifestGroups(database.sql)

    async def work(conn: Connection) -> Written:
        await _refuse_bad_parent(conn, rows, declaration)
        ids = {name: row.id for name, row in (await groups.ensure(conn, [declaration.group])).items()}
        at = await rows.now(conn, clock.injected())
        written = await Writer(rows, app=app, origin=Origin.RUNTIME, groups=ids, now=at).write(conn, words)
        if written.planned:
            await notify_in(conn, database, ["manifest"])
        return written

    written = await declaring(database, work)
    if written.created:
        return "created"
    return "changed" if written.changed else "unchanged"


async def _refuse_bad_parent(conn: Connection, rows: DeclaredManifests, declaration: ManifestDeclaration) -> None:
    if declaration.parent is None:
        return
    ancestors = await rows.ancestors(conn, declaration.parent)
    if not ancestors:
        raise UnknownManifest(name=declaration.parent)
    refuse_cycle(declaration.external_id, ancestors)
