"""The trace that the caller is part of, where OpenTelemetry is in use; it is never imported on our own account."""

from __future__ import annotations

import sys


def traceparent() -> str | None:
    """The current span as a W3C traceparent; None where nobody traces."""
    telemetry = sys.modules.get("opentelemetry.trace")
    if telemetry is None:
        return None
    span = telemetry.get_current_span().get_span_context()
    if not span.is_valid:
        return None
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{int(span.trace_flags):02x}"
