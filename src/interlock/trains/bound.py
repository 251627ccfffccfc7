"""A train with its input: checked, encoded and ready to be enqueued or scheduled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from interlock.trains.train import Train

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Bound(Generic[T]):
    train: str
    input: bytes
    declaration: Train[..., Any, T] = field(repr=False, compare=False)

    @property
    def value(self) -> dict[str, Any]:
        """The arguments that were bound, as the train will receive them."""
        return self.declaration.signature.decode(self.input)
