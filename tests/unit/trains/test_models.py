"""Pydantic models as inputs and outputs."""

import itertools
import re
import subprocess
import sys
from dataclasses import dataclass, make_dataclass
from datetime import datetime
from typing import Annotated, Any, Generic, NamedTuple, NewType, NotRequired, TypeVar

import pydantic
import pytest
from typing_extensions import TypeAliasType, TypedDict

from interlock.errors import InvalidInput, InvalidOutput, InvalidTrain
from interlock.trains.codec import ModelCodec, codec_for
from interlock.trains.registry import Registry
from interlock.trains.run import run_train

T = TypeVar("T")


class User(pydantic.BaseModel):
    name: str
    joined: datetime = datetime(2026, 1, 1)  # noqa: DTZ001  a naive time must survive too
    score: float | None = None


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True, extra="forbid")
    at: datetime
    raw: bytes


class Aliased(pydantic.BaseModel):
    value: int = pydantic.Field(default=0, validation_alias="readAs", serialization_alias="writtenAs")


class Login(pydantic.BaseModel):
    user: str
    password: pydantic.SecretStr | None = None


class OpenLogin(Login):
    @pydantic.field_serializer("password")
    def reveal(self, password: pydantic.SecretStr) -> str:
        return password.get_secret_value()


class Remembering(Login):
    _seen: int = pydantic.PrivateAttr(default=0)


def remembering(**fields):
    model = Remembering(**fields)
    model._seen = 1
    return model


class Point:
    def __init__(self, x):
        self.x = x


class Place(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    at: Annotated[
        Point,
        pydantic.PlainSerializer(lambda point: point.x),
        pydantic.BeforeValidator(lambda found: found if isinstance(found, Point) else Point(found)),
    ]


class Cat(pydantic.BaseModel):
    meows: int


class Dog(pydantic.BaseModel):
    barks: int


class Box(pydantic.BaseModel, Generic[T]):
    content: T


@dataclass
class Team:
    lead: User


@pydantic.dataclasses.dataclass
class Checked:
    age: int = pydantic.Field(gt=0)


ADA = User(name="Ada")


def train_of(annotation):
    def take(value) -> None: ...

    take.__annotations__ |= {"value": annotation, "return": annotation}
    return Registry().train(take)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (User, ADA),
        (list[User], [ADA, User(name="Bob")]),
        (dict[str, User], {"a": ADA}),
        (User | None, None),
        (User | None, ADA),
        (Cat | Dog, Dog(barks=2)),
        (Cat | Dog, Cat(meows=2)),
        (Box[int], Box[int](content=3)),
        (Strict, Strict(at=datetime(2026, 1, 2), raw=b"x")),  # noqa: DTZ001  see above
        (Aliased, Aliased(readAs=7)),
        (Annotated[int, pydantic.Field(gt=3)] | None, 4),
        (pydantic.HttpUrl, pydantic.HttpUrl("https://example.org/")),
        (Login, Login(user="ada")),
        (OpenLogin, OpenLogin(user="ada", password="swordfish")),
        (Team, Team(ADA)),
        (Checked, Checked(3)),
    ],
)
def test_a_model_comes_back_as_it_went_in(annotation, value):
    train = train_of(annotation)
    assert train.bind(value).value == {"value": value}
    assert train.signature.decode_output(train.signature.encode_output(value)) == value


@pytest.mark.parametrize(
    ("annotation", "value", "problem"),
    [
        (User, 3, "value: "),
        (User, {"name": "Ada"}, "value: "),
        (Annotated[int, pydantic.Field(gt=3)], 3, "value: Input should be greater than 3"),
        (list[pydantic.PositiveInt], [1, 0], "value[1]: Input should be greater than 0"),
        (User, User.model_construct(name=3), "value: "),
        (list[User], [ADA, None], "value[1]: "),
        (User, User(name="\0"), "value.name: a NUL character"),
        (User, User(name="x", score=float("nan")), "value.score: nan has no place"),
        (Login, Login(user="ada", password="swordfish"), "value: a secret would be stored as asterisks"),
        (list[Login], [Login(user="ada", password="swordfish")], "value: a secret would be stored as asterisks"),
    ],
)
def test_a_bad_model_is_refused_at_bind(annotation, value, problem):
    with pytest.raises(InvalidInput) as refused:
        train_of(annotation).bind(value)
    assert refused.value.problem.startswith(problem)


@pytest.mark.parametrize(
    ("annotation", "raw", "problem"),
    [
        (User, b'{"value":{"name":3}}', "value.name: Input should be a valid string"),
        (list[User], b'{"value":[{"name":3}]}', "value[0].name: Input should be a valid string"),
        (User, b"{}", "parameter 'value' is missing"),
        (Checked, b'{"value":{"age":0}}', "value.age: Input should be greater than 0"),
    ],
)
async def test_a_model_is_checked_again_before_it_runs(annotation, raw, problem):
    with pytest.raises(InvalidInput) as refused:
        await run_train(train_of(annotation), raw)
    assert refused.value.problem.startswith(problem)


async def test_models_and_plain_types_mix_and_defaults_apply():
    @Registry().train(name="mixed")
    async def mixed(user: User, times: int, other: User | None = None) -> list[User]:
        return [user] * times + ([other] if other else [])

    out = await run_train(mixed, mixed.bind(ADA, 2).input)
    assert mixed.signature.decode_output(out) == [ADA, ADA]


@dataclass
class Limited:
    value: pydantic.PositiveInt


class LimitedTuple(NamedTuple):
    value: pydantic.PositiveInt


class LimitedDict(TypedDict):
    value: NotRequired[Annotated[int, pydantic.Field(gt=0)]]


@dataclass
class LimitedBox(Generic[T]):
    content: T
    value: pydantic.PositiveInt


Quantity = NewType("Quantity", Annotated[int, pydantic.Field(gt=0)])
Amount = TypeAliasType("Amount", pydantic.PositiveInt)


@pytest.mark.parametrize(
    ("annotation", "good", "bad"),
    [
        (Limited, Limited(1), Limited(0)),
        (LimitedTuple, LimitedTuple(1), LimitedTuple(0)),
        (LimitedDict, {"value": 1}, {"value": 0}),
        (LimitedBox[str], LimitedBox("a", 1), LimitedBox("a", 0)),
        (Quantity, Quantity(1), Quantity(0)),
        (Amount, 1, 0),
        (dict[str, list[Limited]], {"a": [Limited(1)]}, {"a": [Limited(0)]}),
    ],
)
def test_a_constraint_holds_wherever_a_type_may_carry_it(annotation, good, bad):
    train = train_of(annotation)
    assert train.bind(good).value == {"value": good}
    with pytest.raises(InvalidInput, match="Input should be greater than 0"):
        train.bind(bad)


def test_a_model_is_found_whatever_was_looked_at_before(monkeypatch):
    """Parts of a type are made on the way, and one may get the place in memory of another that is gone."""
    module = sys.modules[__name__]
    missed, here = [], {"__module__": __name__}
    for plain, before in itertools.product(range(1, 8), range(6)):
        first = make_dataclass("First", [(f"a{n}", "list[int]") for n in range(plain)], namespace=here)
        second_fields = [*((f"b{n}", "list[str]") for n in range(before)), ("users", "list[User]")]
        second = make_dataclass("Second", second_fields, namespace=here)
        monkeypatch.setattr(module, "First", first, raising=False)
        monkeypatch.setattr(module, "Second", second, raising=False)
        whole = make_dataclass("Whole", [("first", "First"), ("second", "Second")], namespace=here)
        if not isinstance(codec_for(whole), ModelCodec):
            missed.append((plain, before))
    assert missed == []


class Handle:
    """Pydantic knows nothing of it."""


class Speechless:
    @classmethod
    def __get_pydantic_core_schema__(cls, source, handler):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (tuple[User, Handle], "Unable to generate pydantic-core schema for <class"),
        (Speechless, "NotImplementedError"),
    ],
)
def test_what_pydantic_cannot_take_is_refused_with_its_reason(annotation, reason):
    with pytest.raises(InvalidTrain, match=re.escape(f"cannot be written as JSON ({reason}")):
        train_of(annotation)


def test_a_private_attribute_is_no_secret():
    train = train_of(Remembering)
    assert train.bind(remembering(user="ada")).value == {"value": Remembering(user="ada")}
    with pytest.raises(InvalidInput, match="a secret would be stored as asterisks"):
        train.bind(remembering(user="ada", password="swordfish"))


def test_an_output_that_has_no_schema_comes_back_as_it_went_out():
    def locate() -> Place: ...

    signature = Registry().train(locate).signature
    assert signature.decode_output(signature.encode_output(Place(at=Point(3)))).at.x == 3


@pytest.mark.parametrize("before", ["", "import pydantic"])
def test_what_the_process_imported_before_decides_nothing_about_what_is_stored(before):
    code = f"""
from typing import Annotated
{before}
from annotated_types import MaxLen
from interlock.trains.registry import Registry
def f(a: Annotated[bytes, MaxLen(9)]) -> None: ...
print(Registry().train(f).bind(b"abcd").input.decode())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == '{"a":"abcd"}\n'


def test_a_model_where_anything_is_allowed_is_written_as_its_data():
    assert train_of(Any).bind({"who": Cat(meows=1)}).value == {"value": {"who": {"meows": 1}}}


def test_a_wrong_output_is_named():
    with pytest.raises(InvalidOutput, match="train 'take'"):
        train_of(User).signature.encode_output({"name": "Ada"})


def test_a_model_that_pydantic_cannot_describe_is_refused_at_declaration():
    with pytest.raises(InvalidTrain, match="parameter 'value'"):
        train_of(dict[str, User | type(sys)])


def test_the_schema_holds_the_models_with_references_that_resolve():
    schema = train_of(list[User]).signature.json_schema
    assert schema["properties"]["value"]["items"] == {"$ref": "#/$defs/value.User"}
    assert schema["$defs"]["value.User"]["required"] == ["name"]


def test_the_schema_names_the_fields_as_they_are_stored():
    train = train_of(Aliased)
    assert train.bind(Aliased(readAs=7)).input == b'{"value":{"value":7}}'
    assert list(train.signature.json_schema["properties"]["value"]["properties"]) == ["value"]


def test_pydantic_is_not_imported_for_those_who_do_not_use_it():
    code = """
import sys
from interlock.trains.registry import Registry
from interlock.trains import run
def f(a: int, b: list[str]) -> dict[str, int]: ...
Registry().train(f).bind(1, ["x"])
assert "pydantic" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
