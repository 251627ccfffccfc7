"""An exception as text that PostgreSQL can hold and people can read."""

from __future__ import annotations

import traceback

from interlock.model.frames import OURS

LONGEST_MESSAGE = 8 * 1024
LONGEST_TRACEBACK = 64 * 1024


class RaisedInChildError(Exception):
    """What a train raised in its child process, in the words that the child found for it."""

    def __init__(self, *, failure: str, kind: str, message: str, traceback: str) -> None:
        super().__init__(message)
        self.failure, self.kind, self.message, self.traceback = failure, kind, message, traceback
        self.add_note(traceback)


def kind_of(error: BaseException) -> str:
    """The name of its type, with the module unless it is a builtin."""
    kind = type(error)
    return storable(kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}")


def message_of(found: object) -> str:
    """The text of an error, or of whatever else a user's code answered."""
    try:
        text = str(found)
    except BaseException as broken:  # noqa: BLE001  such a text is user code too
        text = f"its text cannot be shown: {type(broken).__name__}"
    return shortened(storable(text), LONGEST_MESSAGE)


def traceback_of(error: BaseException) -> str:
    try:
        text = "".join(_from_the_users_code(error).format())
    except BaseException as broken:  # noqa: BLE001  as above; also what is too deep to walk
        text = f"the traceback of {kind_of(error)} cannot be shown: {type(broken).__name__}"
    return shortened(storable(text), LONGEST_TRACEBACK)


def _from_the_users_code(error: BaseException) -> traceback.TracebackException:
    """Without the frames that lead to the user's code, which are the same every time and ours."""
    found = traceback.TracebackException.from_exception(error, compact=True)
    part: traceback.TracebackException | None = found
    while part is not None:
        theirs = (place for place, frame in enumerate(part.stack) if not frame.filename.startswith(OURS))
        del part.stack[: next(theirs, 0)]
        part = part.__cause__ or part.__context__
    return found


def storable(text: str) -> str:
    """Without NUL, which PostgreSQL has no place for, and without lone surrogates, which UTF-8 has none for."""
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")


def shortened(text: str, limit: int) -> str:
    """The beginning and the end of a long text, and how much is missing between them."""
    if len(text) <= limit:
        return text
    kept = limit // 2
    return f"{text[:kept]}\n… {len(text) - 2 * kept:,} characters left out …\n{text[-kept:]}"
