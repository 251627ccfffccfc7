"""What orchestrators ask: `/live`, `/ready`, `/startup`, answered by 200 or 503 with a line that names no secret."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, TypeAlias

from interlock.observe.events.probe import ProbesListening
from interlock.operate.health_signs import SignsComponent, VitalSigns
from interlock.web.http import Answer, HttpServer, failing, parse_address

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from interlock.observe.bus import Emit
    from interlock.operate.health_signs import Sign
    from interlock.runtime.keeper import Keeper
    from interlock.runtime.supervisor import Component
    from interlock.web.http import Address, Request

    Around: TypeAlias = Callable[[Keeper, Sequence[Component]], Sequence[Component]]


def probes_at(text: str, emit: Emit) -> Around:
    """The components with probes around them; a wrong address is refused before anything is opened."""
    address = parse_address(text)

    def around(keeper: Keeper, components: Sequence[Component]) -> Sequence[Component]:
        signs = VitalSigns(keeper)
        return [ProbeServer(address, signs, emit=emit), *components, SignsComponent(signs)]

    return around


class ProbeServer(HttpServer):
    """Started first and stopped last, so that it answers while the others start and drain."""

    name = "probes"

    def __init__(self, address: Address, signs: VitalSigns, *, emit: Emit) -> None:
        super().__init__(address)
        self._emit = emit
        self._paths: dict[str, Callable[[], Sign]] = {
            "/live": signs.live,
            "/ready": signs.ready,
            "/startup": signs.startup,
        }

    def listening(self) -> None:
        self._emit(ProbesListening(host=self.address.host, port=self.address.port))

    async def answer(self, request: Request) -> Answer:
        look = self._paths.get(request.path)
        if look is None:
            return failing(HTTPStatus.NOT_FOUND, f"there are {', '.join(self._paths)}")
        if request.method not in ("GET", "HEAD"):
            return failing(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD")
        sign = look()
        if not sign.good:
            return failing(HTTPStatus.SERVICE_UNAVAILABLE, sign.detail)
        return Answer(HTTPStatus.OK, {"status": "ok", "detail": sign.detail})
