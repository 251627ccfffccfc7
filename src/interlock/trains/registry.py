"""The trains of one app, by name."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, cast

from interlock.errors import DeclarationAfterStart, DuplicateName, InvalidOption, InvalidTrain, UnknownTrain
from interlock.model.work import ALL_TRAINS
from interlock.trains.chain import Chain
from interlock.trains.gateway import GatewaySlot
from interlock.trains.junction import Junction
from interlock.trains.names import checked_name
from interlock.trains.options import ChainKeywords, TrainKeywords, checked_options, refuse_unknown
from interlock.trains.shape import read_shape
from interlock.trains.signature import Signature
from interlock.trains.train import Train

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Unpack

    from interlock.trains.declare import DeclareChain, DeclareTrain
    from interlock.trains.gateway import Gateway
    from interlock.trains.options import TrainOptions

AnyTrain = Train[..., Any, Any]


class Registry:
    def __init__(self) -> None:
        self._slot = GatewaySlot()
        self._trains: dict[str, AnyTrain] = {}
        self._by_any_name: dict[str, AnyTrain] = {}
        self._frozen = False

    @property
    def train(self) -> DeclareTrain:
        """Declare a function as a train: `@train` or `@train(name=…, …)`."""
        return self._declare

    @property
    def chain(self) -> DeclareChain:
        """Declare a train of junctions: `chain(name, first, second, …)`."""
        return self._declare_chain

    def attach(self, gateway: Gateway | None) -> None:
        """From now on the trains enqueue through this gateway."""
        self._slot.gateway = gateway

    def freeze(self) -> None:
        """The app has started: what servers know of its trains does not change any more."""
        self._frozen = True

    def get(self, name: str) -> AnyTrain:
        """The train of that name, or the one that had it before a rename."""
        try:
            return self._by_any_name[name]
        except KeyError:
            raise UnknownTrain(name=name, known=sorted(self._trains)) from None

    def refuse_foreign(self, train: AnyTrain) -> None:
        """Refuse a train of another app: no server of this one would run it."""
        if self.get(train.name) is not train:
            raise UnknownTrain(name=f"{train.name} (of another app)", known=sorted(self._trains))

    def names(self) -> frozenset[str]:
        """Every name under which work can be taken, aliases included."""
        return frozenset(self._by_any_name)

    def __iter__(self) -> Iterator[AnyTrain]:
        return iter(self._trains.values())

    def __len__(self) -> int:
        return len(self._trains)

    def _declare(self, function: Any = None, /, **options: Unpack[TrainKeywords]) -> Any:
        refuse_unknown(options, TrainKeywords)
        if function is None:
            return lambda function: self._add_function(function, options)
        return self._add_function(function, options)

    def _declare_chain(self, name: str, /, *steps: Callable[..., Any], **options: Unpack[ChainKeywords]) -> Any:
        self._refuse_after_start(f"chain {name!r}")
        refuse_unknown(options, ChainKeywords)
        checked = checked_options(cast("TrainKeywords", options))
        return self._add(Chain(checked_name("name", name), steps, options=checked, slot=self._slot))

    def _add_function(self, function: Callable[..., Any], keywords: TrainKeywords) -> AnyTrain:
        name = checked_name("name", keywords["name"] if "name" in keywords else _default_name(function))
        self._refuse_after_start(f"train {name!r}")
        options, shape = checked_options(keywords), read_shape(function, name)
        junction = Junction.of(name, function, shape)
        _check_process(options, junction)
        signature = Signature(name, shape, shape)
        return self._add(Train(function, signature=signature, junctions=(junction,), options=options, slot=self._slot))

    def _add(self, train: AnyTrain) -> AnyTrain:
        names = (train.name, *train.options.aliases)
        for position, name in enumerate(names):
            if name == ALL_TRAINS:
                raise InvalidOption(option="name", found=name, expected="another name: it stands for all trains")
            if name in self._by_any_name or name in names[:position]:
                raise DuplicateName(kind="train", name=name, hint="pass another name= to one of the two")
        self._trains[train.name] = train
        self._by_any_name.update(dict.fromkeys(names, train))
        return train

    def _refuse_after_start(self, what: str) -> None:
        if self._frozen:
            advice = "declare it at import: servers say which trains they know when they start"
            raise DeclarationAfterStart(what=what, advice=advice)


def _default_name(function: Any) -> str:
    """The function's own short name; one that lives in a class is too easily met twice to go by it."""
    if not inspect.isfunction(function):
        raise InvalidTrain(train=repr(function), problem="it is no function", hint="pass a def or an async def")
    name, place = function.__name__, function.__qualname__.rpartition("<locals>.")[2]
    if name != place or not name.isidentifier():
        raise InvalidTrain(train=function.__qualname__, problem="it has no name of its own", hint="pass name=")
    return name


def _check_process(options: TrainOptions, junction: Junction) -> None:
    if options.process and (junction.is_async or "<" in junction.function.__qualname__):
        expected = "process=True only on a plain function at module level, which a pool child can import"
        raise InvalidOption(option="process", found=True, expected=expected)
