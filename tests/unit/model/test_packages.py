from __future__ import annotations

import sys

import pytest

from interlock.errors import PackageMissing
from interlock.locks.redis import RedisLocks
from interlock.outbox.emitters.redis_stream import RedisStream
from interlock.outbox.emitters.webhook import Webhook

URL = "redis://127.0.0.1:1/0"


@pytest.mark.parametrize(
    ("package", "choose"),
    [
        ("redis", lambda: RedisLocks(URL, "shop")),
        ("redis", lambda: RedisStream(URL)),
        ("httpx", lambda: Webhook("https://partner.example/hook")),
    ],
    ids=["locks", "stream", "webhook"],
)
def test_a_package_that_is_missing_is_named_when_it_is_chosen_not_when_it_is_used(monkeypatch, package, choose):
    choose()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(PackageMissing, match=f"run: pip install {package}"):
        choose()
