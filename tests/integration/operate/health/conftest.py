from __future__ import annotations

from tests.integration.cli.conftest import interlock

__all__ = ["interlock"]
