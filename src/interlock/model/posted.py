"""The message by which a dispatcher submits an execution to a runner; the input stays in the row."""

from __future__ import annotations

from uuid import UUID  # noqa: TC003  the decoder reads the annotations

import msgspec


class Posted(msgspec.Struct, frozen=True):
    """The token is the one by which the dispatcher holds the execution: who takes it over trades it for its own."""

    execution_id: int
    train: str
    attempt: int
    token: UUID


decode = msgspec.json.Decoder(Posted).decode
encode = msgspec.json.encode
