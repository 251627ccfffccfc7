import functools
import pickle
import sys

import pytest

from interlock.errors import (
    DeclarationAfterStart,
    DuplicateName,
    InvalidOption,
    InvalidTrain,
    TrainWithoutApp,
    UnknownTrain,
)
from interlock.trains.registry import Registry

module_registry = Registry()


@module_registry.train
def double(number: int) -> int:
    """Twice the number."""
    return 2 * number


def test_calling_a_train_stays_a_plain_call():
    assert double(4) == 8
    assert double.__doc__ == "Twice the number."
    assert double.__name__ == "double"


async def test_calling_an_async_train_answers_its_coroutine():
    @Registry().train
    async def greet(name: str) -> str:
        return f"hello {name}"

    assert await greet("Ada") == "hello Ada"


def test_a_plain_call_is_not_checked():
    assert double("ab") == "abab"


def test_a_train_is_found_by_its_name_and_by_every_alias():
    registry = Registry()
    train = registry.train(name="new", aliases=["old", "older"])(lambda: None)
    assert registry.get("new") is registry.get("old") is registry.get("older") is train
    assert registry.names() == {"new", "old", "older"}
    assert list(registry) == [train]
    assert len(registry) == 1


def test_work_bound_by_a_renamed_train_carries_the_new_name():
    registry = Registry()
    registry.train(name="new", aliases=["old"])(lambda: None)
    assert registry.get("old").bind().train == "new"


def test_an_unknown_name_says_which_are_known():
    registry = Registry()
    registry.train(name="a", aliases=["z"])(lambda: None)
    with pytest.raises(UnknownTrain, match="no train is called 'b'; known: a"):
        registry.get("b")


@pytest.mark.parametrize(("name", "aliases"), [("a", ()), ("old", ()), ("b", ("a",)), ("b", ("old",)), ("b", ("b",))])
def test_a_name_or_alias_that_is_taken_is_refused(name, aliases):
    registry = Registry()
    registry.train(name="a", aliases=["old"])(lambda: None)
    with pytest.raises(DuplicateName, match="name="):
        registry.train(name=name, aliases=aliases)(lambda: None)
    assert registry.names() == {"a", "old"}


@pytest.mark.parametrize("options", [{"name": "*"}, {"name": "all", "aliases": ["*"]}])
def test_no_train_takes_the_name_that_stands_for_all_of_them(options):
    registry = Registry()
    with pytest.raises(InvalidOption, match="stands for all trains"):
        registry.train(Holder.static, **options)
    with pytest.raises(InvalidOption, match="stands for all trains"):
        registry.chain("*", double)
    assert len(registry) == 0


def test_a_chain_cannot_take_the_name_of_a_train():
    registry = Registry()
    train = registry.train(name="a")(lambda: None)
    with pytest.raises(DuplicateName):
        registry.chain("a", train)


def test_nothing_is_declared_after_the_start():
    registry = Registry()
    train = registry.train(name="a")(lambda: None)
    registry.freeze()
    with pytest.raises(DeclarationAfterStart, match="train 'b'"):
        registry.train(name="b")(lambda: None)
    with pytest.raises(DeclarationAfterStart, match="chain 'c'"):
        registry.chain("c", train)
    assert registry.names() == {"a"}


def test_a_function_in_a_factory_goes_by_its_short_name():
    @Registry().train
    def report() -> None: ...

    assert report.name == "report"


class Holder:
    def method(self) -> None: ...

    @staticmethod
    def static() -> None: ...


class Callable:
    def __call__(self) -> None: ...


def generator() -> int:
    yield 1


async def async_generator() -> int:
    yield 1


def positional_only(a: int, /) -> None: ...


def variable(*numbers: int) -> None: ...


def keywords(**numbers: int) -> None: ...


def unannotated(a: int, b) -> None: ...


def unresolvable(a: "NoSuchType") -> None: ...  # noqa: F821  what an import under TYPE_CHECKING leaves behind


def socket(a: int, connection: object) -> None: ...


def callback(then: list[complex]) -> None: ...


def ambiguous(a: str | bytes) -> None: ...


def unstorable_output() -> complex:
    return 1j


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (Holder.method, "pass name="),
        (Holder.static, "pass name="),
        (lambda: None, "pass name="),
        (Callable(), "no function"),
        (functools.partial(double, 1), "no function"),
        (print, "no function"),
        (double, "no function"),
        (generator, "generator"),
        (async_generator, "generator"),
        (positional_only, "parameter 'a' is positional-only"),
        (variable, r"parameter '\*numbers' is variadic positional; inputs are stored by name"),
        (keywords, r"parameter '\*\*numbers' is variadic keyword"),
        (unannotated, "parameter 'b' has no annotation; write its type, for instance b: str"),
        (unresolvable, "NoSuchType.*TYPE_CHECKING"),
        (socket, "parameter 'connection' of type object cannot be written as JSON"),
        (callback, r"parameter 'then' of type list\[complex\]"),
        (ambiguous, "parameter 'a' of type str | bytes"),
        (unstorable_output, "the output of type complex"),
    ],
)
def test_what_cannot_be_a_train_is_refused_where_it_is_declared(function, text):
    registry = Registry()
    with pytest.raises(InvalidTrain, match=text):
        registry.train(function)
    assert not registry.names()


def test_a_method_may_be_a_train_under_a_name_given_to_it():
    assert Registry().train(Holder.static, name="static").name == "static"


def test_a_train_without_an_app_says_how_to_get_one():
    with pytest.raises(TrainWithoutApp, match=r"@app\.train"):
        double.enqueue(1)


def test_a_train_travels_to_a_pool_child_by_name(monkeypatch):
    # Collected by path, this file is not importable by name; a user's module is.
    monkeypatch.setitem(sys.modules, double.__module__, sys.modules.get(double.__module__) or _this_module())
    assert pickle.loads(pickle.dumps(double)) is double


def _this_module():
    import types

    module = types.ModuleType(double.__module__)
    module.double = double
    return module
