"""The types of the declaring calls, so that mypy knows the arguments and the output of every train and chain."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeAlias, TypeVar, overload

if TYPE_CHECKING:
    from typing import Unpack

    from interlock.trains.chain import Chain
    from interlock.trains.options import ChainKeywords, TrainKeywords
    from interlock.trains.train import Train

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")

Work: TypeAlias = Coroutine[Any, Any, T]
Step: TypeAlias = Callable[P, Coroutine[Any, Any, T] | T]
AnyStep: TypeAlias = Callable[..., Any]


class Decorator(Protocol):
    """What `@app.train(...)` answers."""

    @overload
    def __call__(self, function: Callable[P, Work[T]], /) -> Train[P, Work[T], T]: ...
    @overload
    def __call__(self, function: Callable[P, T], /) -> Train[P, T, T]: ...


class DeclareTrain(Protocol):
    """`@app.train`, with or without options."""

    @overload
    def __call__(self, function: Callable[P, Work[T]], /, **options: Unpack[TrainKeywords]) -> Train[P, Work[T], T]: ...
    @overload
    def __call__(self, function: Callable[P, T], /, **options: Unpack[TrainKeywords]) -> Train[P, T, T]: ...
    @overload
    def __call__(self, function: None = None, /, **options: Unpack[TrainKeywords]) -> Decorator: ...


class DeclareChain(Protocol):
    """`app.chain`. Each length comes twice, as mypy finds the output of the last step only if told which kind it is.

    From the seventh step on only the input is known here; that the steps fit is checked when the chain is built.
    """

    @overload
    def __call__(self, name: str, a: Callable[P, Work[T]], /, **options: Unpack[ChainKeywords]) -> Chain[P, T]: ...
    @overload
    def __call__(self, name: str, a: Callable[P, T], /, **options: Unpack[ChainKeywords]) -> Chain[P, T]: ...
    @overload
    def __call__(
        self, name: str, a: Step[P, A], b: Callable[[A], Work[T]], /, **options: Unpack[ChainKeywords]
    ) -> Chain[P, T]: ...
    @overload
    def __call__(
        self, name: str, a: Step[P, A], b: Callable[[A], T], /, **options: Unpack[ChainKeywords]
    ) -> Chain[P, T]: ...
    @overload
    def __call__(
        self, name: str, a: Step[P, A], b: Step[[A], B], c: Callable[[B], Work[T]], /, **options: Unpack[ChainKeywords]
    ) -> Chain[P, T]: ...
    @overload
    def __call__(
        self, name: str, a: Step[P, A], b: Step[[A], B], c: Callable[[B], T], /, **options: Unpack[ChainKeywords]
    ) -> Chain[P, T]: ...
    @overload
    def __call__(
        self,
        name: str,
        a: Step[P, A],
        b: Step[[A], B],
        c: Step[[B], C],
        d: Callable[[C], Work[T]],
        /,
        **options: Unpack[ChainKeywords],
    ) -> Chain[P, T]: ...
    @overload
    def __call__(
        self,
        name: str,
        a: Step[P, A],
        b: Step[[A], B],
        c: Step[[B], C],
        d: Callable[[C], T],
        /,
        **options: Unpack[ChainKeywords],
    ) -> Chain[P, T]: ...
    @overload
    def __call__(
        self,
        name: str,
        a: Step[P, A],
        b: Step[[A], B],
        c: Step[[B], C],
        d: Step[[C], D],
        e: Callable[[D], Work[T]],
        /,
        **options: Unpack[ChainKeywords],
    ) -> Chain[P, T]: ...
    @overload
    def __call__(
        self,
        name: str,
        a: Step[P, A],
        b: Step[[A], B],
        c: Step[[B], C],
        d: Step[[C], D],
        e: Callable[[D], T],
        /,
        **options: Unpack[ChainKeywords],
    ) -> Chain[P, T]: ...
    @overload
    def __call__(
        self,
        name: str,
        a: Step[P, A],
        b: Step[[A], B],
        c: Step[[B], C],
        d: Step[[C], D],
        e: Step[[D], E],
        f: Callable[[E], Work[T]],
        /,
        **options: Unpack[ChainKeywords],
    ) -> Chain[P, T]: ...
    @overload
    def __call__(
        self,
        name: str,
        a: Step[P, A],
        b: Step[[A], B],
        c: Step[[B], C],
        d: Step[[C], D],
        e: Step[[D], E],
        f: Callable[[E], T],
        /,
        **options: Unpack[ChainKeywords],
    ) -> Chain[P, T]: ...
    @overload
    def __call__(
        self,
        name: str,
        a: Step[P, A],
        b: Callable[[A], Any],
        c: AnyStep,
        d: AnyStep,
        e: AnyStep,
        f: AnyStep,
        g: AnyStep,
        /,
        *more: AnyStep,
        **options: Unpack[ChainKeywords],
    ) -> Chain[P, Any]: ...
