"""The JSON Schema of a train's input: it checks forms and command lines, and is stored with the train."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from interlock.trains.codec import ModelCodec
from interlock.trains.storable import encode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from interlock.trains.codec import PlainCodec
    from interlock.trains.shape import Parameter


def input_schema(
    train: str, parameters: Sequence[Parameter], codecs: Mapping[str, PlainCodec | ModelCodec]
) -> dict[str, Any]:
    """One object schema whose properties are the parameters."""
    properties, definitions = _plain_properties(codecs)
    for name, codec in codecs.items():
        if isinstance(codec, ModelCodec):
            properties[name] = _model_property(name, codec, definitions)
    return {
        "title": train,
        "type": "object",
        "properties": {p.name: properties[p.name] | _default(p, codecs[p.name]) for p in parameters},
        "required": [parameter.name for parameter in parameters if parameter.required],
        "additionalProperties": False,
        **({"$defs": definitions} if definitions else {}),
    }


def _plain_properties(codecs: Mapping[str, PlainCodec | ModelCodec]) -> tuple[dict[str, Any], dict[str, Any]]:
    plain = {name: codec.wire for name, codec in codecs.items() if not isinstance(codec, ModelCodec)}
    schemas, definitions = msgspec.json.schema_components(plain.values(), ref_template="#/$defs/{name}")
    return dict(zip(plain, schemas, strict=True)), definitions


def _model_property(name: str, codec: ModelCodec, definitions: dict[str, Any]) -> dict[str, Any]:
    # Prefixed with the parameter, as msgspec may have defined another type of the same name.
    schema = codec.schema(f"#/$defs/{name}.{{model}}")
    definitions.update({f"{name}.{key}": value for key, value in schema.pop("$defs", {}).items()})
    return schema


def _default(parameter: Parameter, codec: PlainCodec | ModelCodec) -> dict[str, Any]:
    if parameter.required:
        return {}
    try:
        default = codec.dump(parameter.default)
        encode(default)
    except Exception:  # noqa: BLE001  a default that JSON cannot show is still a default
        return {}
    return {"default": default}
