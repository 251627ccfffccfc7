"""Manifests that no live server and no code at hand declares any more, removed on request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.errors import NothingDeclares
from interlock.model.act import Permission
from interlock.observe.events.manifest import ManifestPruned
from interlock.operate.act import Acting
from interlock.store.declaration import DeclaredManifests
from interlock.store.prune import Pruning

if TYPE_CHECKING:
    from interlock.operate.act import Act


class PruneCommands(Acting):
    async def prune(self) -> list[str]:
        """Remove what is declared nowhere, except what is queued or runs; answers the external ids."""
        app, declared = self._means.app, self._means.declarations.manifests
        if app is None:
            raise NothingDeclares(app=None)

        async def work(act: Act) -> list[str]:
            await DeclaredManifests(act.sql).lock(act.conn)
            found = await Pruning(act.sql).orphans(act.conn, app, declared=declared.keys())
            if not found.live_servers and not declared:
                raise NothingDeclares(app=app)
            pruned = await Pruning(act.sql).prune(act.conn, found.manifest_ids)
            for external_id in pruned:
                act.changed("prune", "manifest", external_id, before={"app": app})
                act.events.append(ManifestPruned(external_id=external_id))
            return pruned

        return await self._act(Permission.PRUNE, work)
