"""A train of junctions: the output of one is the input of the next.

Only the input of the first and the output of the last are stored, so what passes between two junctions may be any
object. A failure ends the run at once and is named for its junction. Cancellation, a lost lease and an outcome that the
junction chose itself are no failures of a junction, and pass through as they are.
"""

from __future__ import annotations

from collections.abc import Coroutine
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from interlock.errors import CancelledByRequest, ChainMismatch, InvalidTrain, JunctionFailed, LeaseLost
from interlock.model.outcome import Outcome
from interlock.trains.assignability import assignable
from interlock.trains.junction import Junction, in_thread
from interlock.trains.progress import Unobserved
from interlock.trains.shape import read_shape
from interlock.trains.signature import Signature
from interlock.trains.train import Train

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from interlock.trains.gateway import GatewaySlot
    from interlock.trains.junction import CallPlain
    from interlock.trains.options import TrainOptions
    from interlock.trains.progress import Progress

P = ParamSpec("P")
T = TypeVar("T")


class Chain(Train[P, Coroutine[Any, Any, T], T]):
    def __init__(
        self, name: str, steps: Sequence[Callable[..., Any]], *, options: TrainOptions, slot: GatewaySlot
    ) -> None:
        junctions = tuple(junction for step in steps for junction in _junctions(name, step))
        if not junctions:
            raise InvalidTrain(
                train=name, problem="the chain is empty", hint="pass the functions or trains it consists of"
            )
        for before, after in pairwise(junctions):
            _check_passage(name, before, after)
        signature = Signature(name, junctions[0].shape, junctions[-1].shape)
        super().__init__(self._call, signature=signature, junctions=junctions, options=options, slot=slot)

    @property
    def is_async(self) -> bool:
        return True

    async def run(self, arguments: dict[str, Any], *, progress: Progress, call_plain: CallPlain) -> Any:
        """The output of the last junction."""
        output, total = None, len(self.junctions)
        for index, junction in enumerate(self.junctions):
            await progress.boundary(junction.name, index, total)
            if index:
                arguments = {junction.shape.required[0].name: output}
            output = await self._pass(junction, arguments, call_plain)
            if isinstance(output, Outcome):
                return output
        return output

    async def _pass(self, junction: Junction, arguments: dict[str, Any], call_plain: CallPlain) -> Any:
        try:
            return await junction.call(arguments, call_plain)
        except (CancelledByRequest, LeaseLost, Outcome):
            raise
        except Exception as error:
            raise JunctionFailed(train=self.name, junction=junction.name) from error

    async def _call(self, /, *args: P.args, **kwargs: P.kwargs) -> T:
        arguments = self.signature.arguments(*args, **kwargs)
        output: T = await self.run(arguments, progress=Unobserved(), call_plain=in_thread)
        return output


def _junctions(chain: str, step: Callable[..., Any]) -> Iterator[Junction]:
    if isinstance(step, Train):
        yield from step.junctions
        return
    name = getattr(step, "__name__", repr(step))
    try:
        shape = read_shape(step, chain)
    except InvalidTrain as error:
        problem = f"junction {name!r}: {error.problem}"
        raise InvalidTrain(train=chain, problem=problem, hint=error.hint) from error.__cause__
    yield Junction.of(name, step, shape)


def _check_passage(chain: str, before: Junction, after: Junction) -> None:
    required = after.shape.required
    if len(required) != 1:
        names = ", ".join(parameter.name for parameter in required) or "none"
        problem = f"it must have exactly one required parameter, the output of {before.name!r}; it has: {names}"
        raise ChainMismatch(chain=chain, junction=after.name, problem=problem)
    if not assignable(before.shape.output, required[0].annotation):
        found, wanted = _written(before.shape.output), _written(required[0].annotation)
        problem = f"{before.name!r} returns {found}, but {required[0].name!r} expects {wanted}"
        raise ChainMismatch(chain=chain, junction=after.name, problem=problem)


def _written(annotation: Any) -> str:
    return annotation.__qualname__ if type(annotation) is type else str(annotation)
