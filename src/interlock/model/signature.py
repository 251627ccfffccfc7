"""How a receiver knows that a request is from one who has the secret, unchanged and not old: HMAC-SHA256."""

from __future__ import annotations

import hashlib
import hmac
import re

HEADER = "Interlock-Signature"
_FORM = re.compile(r"t=(\d{1,15}),v1=([0-9a-f]{64})", re.ASCII)


def signature(secret: bytes, body: bytes, seconds: int) -> str:
    """The value of the header: what a receiver computes too, from the body and the time that is named."""
    digest = hmac.new(secret, f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={seconds},v1={digest}"


def is_signed(secret: bytes, body: bytes, found: str, *, now: float, tolerance: float) -> bool:
    """Whether somebody with the secret signed this body, not longer ago (or ahead) than the tolerance in seconds."""
    read = _FORM.fullmatch(found)
    if read is None:
        return False
    seconds = int(read[1])
    fresh = abs(now - seconds) <= tolerance
    return hmac.compare_digest(signature(secret, body, seconds), found) and fresh
