"""One run of a train from its stored input to its stored output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interlock.model.outcome import Outcome
from interlock.trains.junction import in_thread
from interlock.trains.progress import Unobserved

if TYPE_CHECKING:
    from interlock.trains.junction import CallPlain
    from interlock.trains.progress import Progress
    from interlock.trains.train import Train

UNOBSERVED = Unobserved()


async def run_train(
    train: Train[..., Any, Any],
    raw: bytes | str,
    *,
    progress: Progress = UNOBSERVED,
    call_plain: CallPlain = in_thread,
) -> bytes:
    """The output as JSON; the input is decoded, and so checked, again. An outcome that was returned is raised."""
    arguments = train.signature.decode(raw)
    output = await train.run(arguments, progress=progress, call_plain=call_plain)
    return encoded(train, output)


def run_plain(train: Train[..., Any, Any], raw: bytes | str) -> bytes:
    """The same for a plain function, in this very thread: what a pool child calls."""
    return encoded(train, train(**train.signature.decode(raw)))


def encoded(train: Train[..., Any, Any], output: Any) -> bytes:
    """The output as JSON; an outcome in its place is raised, as if the train had raised it."""
    if isinstance(output, Outcome):
        raise output
    return train.signature.encode_output(output)
