"""How the values of one annotated type become JSON and come back, checked.

Types that msgspec knows are its business. A type that contains a pydantic model, or a constraint that only pydantic
checks, belongs to pydantic as a whole, so that unions, aliases and validators mean what they mean there. Pydantic is
imported only for a type that bears its mark or such a constraint, but then also where nobody has imported it yet: who
reads a value must not differ from who wrote it, whatever either has imported before.
"""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from typing import Any, Protocol, get_args, get_origin, get_type_hints

import msgspec

from interlock.trains.storable import to_builtins

_VERSION_OF_BY_NAME = (2, 11)
_MODULES_OF_CONSTRAINTS = frozenset({"pydantic", "annotated_types"})
_ANY_PLACE = "#/$defs/{model}"
_MASKED = "a secret would be stored as asterisks; pass a reference to where it is kept, or serialise the field yourself"


class Codec(Protocol):
    """The road of one type to JSON and back."""

    @property
    def wire(self) -> Any:
        """The type that msgspec decodes to on the way in."""

    def dump(self, value: Any) -> Any:
        """The value in terms of JSON."""

    def load(self, raw: bytes | str) -> Any:
        """The value, or a ValueError that names the place."""


class PlainCodec:
    """A type that msgspec knows."""

    def __init__(self, annotation: Any) -> None:
        msgspec.json.schema(annotation)
        self.wire = annotation
        self.load = msgspec.json.Decoder(annotation).decode

    def dump(self, value: Any) -> Any:
        return to_builtins(value)


class ModelCodec:
    """A type that contains a pydantic model."""

    wire = msgspec.Raw

    def __init__(self, annotation: Any) -> None:
        pydantic = import_module("pydantic")
        self._adapter = pydantic.TypeAdapter(annotation)
        version = tuple(int(part) for part in pydantic.VERSION.split(".")[:2])
        # Names rather than aliases: a model may write one alias and read another, and would not read what it wrote.
        by_name = version >= _VERSION_OF_BY_NAME
        self._by_alias = not by_name
        self._load_options: dict[str, Any] = {"by_alias": True, "by_name": True} if by_name else {}
        self._has_secrets = False
        with suppress(Exception):  # an output needs no schema, and what has none marks no secret
            self._has_secrets = '"writeOnly":true' in msgspec.json.encode(self.schema(_ANY_PLACE)).decode()

    def dump(self, value: Any) -> Any:
        dumped = self._adapter.dump_python(
            value, mode="json", round_trip=True, warnings="error", by_alias=self._by_alias
        )
        if self._has_secrets and self._differs(self.load(msgspec.json.encode(dumped)), value):
            raise ValueError(_MASKED)
        return dumped

    def _differs(self, read_back: Any, value: Any) -> bool:
        """In what is stored: private attributes, which `==` looks at too, never are."""
        plain = partial(self._adapter.dump_python, round_trip=True, by_alias=self._by_alias)
        return bool(plain(read_back) != plain(value))

    def load(self, raw: bytes | str) -> Any:
        return self._adapter.validate_json(raw, **self._load_options)

    def schema(self, ref_template: str) -> dict[str, Any]:
        schema: dict[str, Any] = self._adapter.json_schema(ref_template=ref_template, by_alias=self._by_alias)
        return schema


def codec_for(annotation: Any) -> PlainCodec | ModelCodec:
    """The codec of a type; raises TypeError for one that cannot be written as JSON."""
    return ModelCodec(annotation) if contains_model(annotation, {}) else PlainCodec(annotation)


def contains_model(annotation: Any, seen: dict[int, Any]) -> bool:
    """Whether something of pydantic's occurs in a type, also inside containers, unions, dataclasses and their like.

    What was seen is kept alive, by its identity, because parts are made on the way: another could get the place of one
    that is gone.
    """
    if id(annotation) in seen:
        return False
    seen[id(annotation)] = annotation
    if _is_pydantics(annotation):
        return True
    return any(contains_model(part, seen) for part in _parts(annotation))


def _is_pydantics(part: Any) -> bool:
    """A model, another type that describes itself to pydantic, or a constraint such as `Field(gt=0)`."""
    if isinstance(part, type):
        described = hasattr(part, "__pydantic_validator__") or hasattr(part, "__get_pydantic_core_schema__")
    else:
        described = type(part).__module__.partition(".")[0] in _MODULES_OF_CONSTRAINTS
    return described and _pydantic_is_installed()


@cache
def _pydantic_is_installed() -> bool:
    with suppress(ImportError):
        import_module("pydantic")
        return True
    return False


def _parts(annotation: Any) -> list[Any]:
    if _has_fields(annotation):
        return list(get_type_hints(annotation, include_extras=True).values())
    named = [getattr(annotation, what, None) for what in ("__supertype__", "__value__")]  # NewType, `type` statement
    return [*named, get_origin(annotation), *get_args(annotation)]


def _has_fields(annotation: Any) -> bool:
    """Whether it is a dataclass, a NamedTuple or a TypedDict (a struct's fields are msgspec's business alone)."""
    named = (tuple, dict)
    return isinstance(annotation, type) and (dataclasses.is_dataclass(annotation) or issubclass(annotation, named))


def complaint(error: BaseException, at: str = "") -> str:
    """What a codec found wrong, in one line that starts with the place where it was found."""
    place, text = _pydantic_complaint(error) if hasattr(error, "errors") else _msgspec_complaint(error)
    path = f"{at}{place}".removeprefix(".")
    return f"{path}: {text}" if path else text


def _pydantic_complaint(error: Any) -> tuple[str, str]:
    first = error.errors()[0]
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in first["loc"]), first["msg"]


def _msgspec_complaint(error: BaseException) -> tuple[str, str]:
    text, _, place = str(error).partition(" - at `$")
    # Pydantic's serialiser heads its complaints with a line that says nothing.
    text = text.splitlines()[-1].strip() if text else "no reason given"
    if not isinstance(error, (ValueError, TypeError, RecursionError)):
        text = f"{type(error).__name__}: {text}"
    if isinstance(error, msgspec.DecodeError) and not isinstance(error, msgspec.ValidationError):
        text = f"it is not valid JSON: {text}"
    return place.removesuffix("`"), f"{text[0].lower()}{text[1:]}" if isinstance(error, msgspec.MsgspecError) else text
