"""One step of a train: a function, called on the event loop or, when it is a plain one, in a thread."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from interlock.trains.shape import Shape

CallPlain: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a plain function where it may block; context variables go with it."""

in_thread: CallPlain = asyncio.to_thread


@dataclass(frozen=True, slots=True)
class Junction:
    name: str
    function: Callable[..., Any]
    shape: Shape
    is_async: bool

    @classmethod
    def of(cls, name: str, function: Callable[..., Any], shape: Shape) -> Junction:
        return cls(name, function, shape, inspect.iscoroutinefunction(function))

    async def call(self, arguments: dict[str, Any], call_plain: CallPlain) -> Any:
        if self.is_async:
            return await self.function(**arguments)
        output = await call_plain(partial(_call, self.function, arguments))
        # A plain wrapper around an async function hands back its coroutine.
        return await output if inspect.isawaitable(output) else output


def _call(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    try:
        return function(**arguments)
    except StopIteration as error:
        # A future cannot carry StopIteration: whoever awaits the thread would wait for ever.
        raise RuntimeError("the function raised StopIteration") from error
