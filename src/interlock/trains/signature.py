"""The typed input and output of a train, as stored: JSON that was checked against the function's own signature.

An input holds exactly the arguments that the caller passed. A default is taken when the train runs, so a parameter
that was added with a default reads older inputs, and a caller that does not use it writes what older code can run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from interlock.errors import InvalidInput, InvalidOutput, InvalidTrain
from interlock.trains.codec import ModelCodec, codec_for, complaint
from interlock.trains.schema import input_schema
from interlock.trains.storable import encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from interlock.trains.codec import PlainCodec
    from interlock.trains.shape import Shape

NULL = b"null"
_BYTES = (bytes, bytearray, memoryview)
_MISSING = "Object missing required field `"
_UNKNOWN = "Object contains unknown field `"


class Signature:
    """Encodes and decodes what goes into a train and what comes out of it."""

    def __init__(self, train: str, entrance: Shape, exit_: Shape) -> None:
        self.train = train
        self.parameters = entrance.parameters
        self.output = exit_.output
        self._call = entrance.call
        self._codecs = {p.name: self._codec(f"parameter {p.name!r}", p.annotation) for p in self.parameters}
        self._models = [(name, codec) for name, codec in self._codecs.items() if isinstance(codec, ModelCodec)]
        self._output_codec = self._codec("the output", exit_.output)
        self._partial = len(entrance.required) < len(entrance.parameters)
        self._returns_nothing = exit_.output is None or exit_.output is type(None)
        self._decode = self._decoder()
        self.json_schema: dict[str, Any] = input_schema(train, self.parameters, self._codecs)
        self._refuse_unstorable_schema()

    def arguments(self, /, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The arguments by name, as Python itself would assign them."""
        return self._call.bind(*args, **kwargs).arguments

    def encode(self, /, *args: Any, **kwargs: Any) -> bytes:
        """The input of one run, or InvalidInput that names the parameter."""
        try:
            arguments = self.arguments(*args, **kwargs)
        except TypeError as error:
            raise InvalidInput(train=self.train, problem=f"{error}; it takes {self._call}") from None
        raw = self._encode(arguments)
        for name, read_back in self.decode(raw).items():
            if problem := _passes_for_another(arguments[name], read_back):
                raise InvalidInput(train=self.train, problem=f"{name}: {problem}")
        return raw

    def decode(self, raw: bytes | str) -> dict[str, Any]:
        """The arguments to call the function with, or InvalidInput that names the parameter."""
        try:
            arguments: dict[str, Any] = msgspec.structs.asdict(self._decode(raw))
        except Exception as error:  # user code runs in there (__post_init__), and one bad input fails alone
            raise InvalidInput(train=self.train, problem=self._explain(error)) from error
        if self._partial:
            arguments = {name: value for name, value in arguments.items() if value is not msgspec.UNSET}
        for name, codec in self._models:
            if name in arguments:
                arguments[name] = self._step(name, codec.load, bytes(arguments[name]))
        return arguments

    def encode_output(self, value: Any) -> bytes:
        """The output as JSON, checked against the return annotation."""
        if value is None and self._returns_nothing:
            return NULL
        try:
            raw = encode(self._output_codec.dump(value))
            problem = _passes_for_another(value, self._output_codec.load(raw))
        except Exception as error:  # user code runs in there (serialisers)
            raise InvalidOutput(train=self.train, problem=complaint(error)) from error
        if problem:
            raise InvalidOutput(train=self.train, problem=problem)
        return raw

    def decode_output(self, raw: bytes | str) -> Any:
        """The output as the type that the train declares."""
        try:
            return self._output_codec.load(raw)
        except Exception as error:  # as in decode
            raise InvalidOutput(train=self.train, problem=complaint(error)) from error

    def _codec(self, what: str, annotation: Any) -> PlainCodec | ModelCodec:
        try:
            return codec_for(annotation)
        except Exception as error:  # msgspec and pydantic refuse with many types
            problem = f"{what} of type {_name(annotation)} cannot be written as JSON ({_reason(error)})"
            hint = "use plain types, dataclasses or pydantic models, or pass a reference to what is stored elsewhere"
            raise InvalidTrain(train=self.train, problem=problem, hint=hint) from error

    def _refuse_unstorable_schema(self) -> None:
        """It is stored when a server starts, which the text of one literal or description must not prevent."""
        try:
            encode(msgspec.json.decode(msgspec.json.encode(self.json_schema)))  # an endless bound is stored as null
        except (ValueError, TypeError) as error:
            problem = f"the JSON Schema of its input cannot be stored ({error})"
            hint = "look at the literals, enums and descriptions in its annotations"
            raise InvalidTrain(train=self.train, problem=problem, hint=hint) from error

    def _decoder(self) -> Callable[[bytes | str], msgspec.Struct]:
        # msgspec does not check defaults, so UNSET marks "not passed" without being part of any type.
        fields: list[Any] = [
            (p.name, self._codecs[p.name].wire, *(() if p.required else (msgspec.UNSET,))) for p in self.parameters
        ]
        model = msgspec.defstruct("Input", fields, kw_only=True, forbid_unknown_fields=True)
        return msgspec.json.Decoder(model).decode

    def _encode(self, arguments: dict[str, Any]) -> bytes:
        builtins = {name: self._step(name, self._codecs[name].dump, value) for name, value in arguments.items()}
        try:
            return encode(builtins)
        except (ValueError, TypeError, RecursionError) as error:
            raise InvalidInput(train=self.train, problem=str(error)) from error

    def _step(self, name: str, step: Callable[[Any], Any], value: Any) -> Any:
        try:
            return step(value)
        except Exception as error:  # as in decode
            raise InvalidInput(train=self.train, problem=complaint(error, at=name)) from error

    def _explain(self, error: Exception) -> str:
        text = str(error)
        if text.startswith(_MISSING) and text.endswith("`") and " - at " not in text:
            return f"parameter {text.removeprefix(_MISSING)[:-1]!r} is missing; it takes {self._call}"
        if text.startswith(_UNKNOWN) and " - at " not in text:
            field = text.removeprefix(_UNKNOWN)[:-1]
            return f"parameter {field!r} is unknown to this version of the train; it takes {self._call}"
        return complaint(error)


def _passes_for_another(value: Any, read_back: Any) -> str | None:
    """Bytes are stored as base64: without this look a text would pass for bytes, and bytes for a text."""
    if isinstance(value, _BYTES) and isinstance(read_back, str):
        return "bytes would arrive as base64 text; decode them, or declare the type as bytes"
    if isinstance(value, str) and isinstance(read_back, _BYTES):
        return "expected `bytes`, got `str`, which would be read as base64; encode it"
    return None


def _name(annotation: Any) -> str:
    return annotation.__qualname__ if isinstance(annotation, type) else str(annotation)


def _reason(error: Exception) -> str:
    """Pydantic begins with what is wrong and ends with a link; msgspec ends with the type that it cannot take."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0 if type(error).__module__.startswith("pydantic") else -1]
