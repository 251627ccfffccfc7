"""Which trains run elsewhere is declared once, at import, and wrongly declared it is refused at the call."""

from __future__ import annotations

import importlib.util
from datetime import timedelta
from types import SimpleNamespace

import httpx
import pytest

from interlock import Interlock
from interlock.dispatch.submitters.http import HttpSubmitter, SubmitRefused, _refuse_unless_taken
from interlock.dispatch.submitters.protocol import NoRoom
from interlock.errors import DeclarationAfterStart, DuplicateName, InvalidOption, PackageMissing, UnknownTrain

SECRET = "a secret of some length"


@pytest.fixture
def app() -> Interlock:
    app = Interlock("postgresql://nobody@127.0.0.1:1/nothing")

    @app.train(aliases=["draw"])
    async def render() -> None: ...

    @app.train
    async def work() -> None: ...

    return app


@pytest.fixture
def far() -> HttpSubmitter:
    return HttpSubmitter("https://runner:8443/", secret=SECRET)


def test_a_route_covers_every_name_of_its_trains(app, far):
    app.add_submitter(far, trains=["draw"])
    assert app.routes.trains == {"render", "draw"}
    assert app.routes.tags == ("submits:draw", "submits:render")
    assert far.name == "https://runner:8443"


def test_a_train_goes_to_one_submitter(app, far):
    app.add_submitter(far, trains=[app.trains.get("render")])
    with pytest.raises(DuplicateName, match="put several runners behind one address"):
        app.add_submitter(far, trains=["render"])
    with pytest.raises(DuplicateName):
        app.add_submitter(far, trains=["work", "work"])
    assert app.routes.trains == {"render", "draw"}


def test_a_train_of_nobody_or_of_another_app_is_unknown(app, far):
    with pytest.raises(UnknownTrain, match="'nothing'; known: render, work"):
        app.add_submitter(far, trains=["nothing"])
    other = Interlock("postgresql://nobody@127.0.0.1:1/nothing")

    @other.train
    async def work() -> None: ...

    with pytest.raises(UnknownTrain, match="another app"):
        app.add_submitter(far, trains=[work])


@pytest.mark.parametrize("trains", ["render", 7, [], [7]])
def test_what_are_no_trains_is_refused(app, far, trains):
    with pytest.raises(InvalidOption):
        app.add_submitter(far, trains=trains)


def test_what_is_no_submitter_is_refused(app):
    with pytest.raises(InvalidOption, match="HttpSubmitter"):
        app.add_submitter("https://runner", trains=["render"])


@pytest.mark.parametrize("lacks", ["submit", "aclose"])
def test_a_submitter_that_lacks_a_method_is_refused_before_it_is_called(app, lacks):
    def does() -> None: ...

    methods = {"submit": does, "aclose": does} | {lacks: None}
    with pytest.raises(InvalidOption, match=lacks):
        app.add_submitter(SimpleNamespace(name="own", **methods), trains=["render"])


def test_after_the_start_nothing_is_routed(app, far):
    app.routes.freeze()
    with pytest.raises(DeclarationAfterStart, match="https://runner:8443"):
        app.add_submitter(far, trains=["render"])


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://runner:7070", "allow_plain_http=True where the network is trusted"),
        ("http://10.0.0.1", "https"),
        ("ftp://runner", "begins with https:// or http://"),
        ("runner:7070", "begins with https:// or http://"),
        ("https://", "begins with https:// or http://"),
        (7, "the address of a runner"),
        ("https://ada:hunter2@runner", "without user, password"),
        ("https://runner/?token=hunter2", "without user, password"),
    ],
)
def test_an_address_that_is_none_or_not_safe_is_refused_without_showing_a_password(url, words):
    with pytest.raises(InvalidOption) as refused:
        HttpSubmitter(url, secret=SECRET)
    assert words in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("url", ["http://localhost:1", "http://127.0.0.1:1", "http://[::1]:1", "https://runner"])
def test_the_loopback_needs_no_tls(url):
    assert HttpSubmitter(url, secret=SECRET).name == url


def test_plain_http_is_for_those_who_say_so():
    assert HttpSubmitter("http://runner:1", secret=SECRET, allow_plain_http=True).name == "http://runner:1"


@pytest.mark.parametrize("secret", ["", "  ", None, b"bytes"])
def test_a_secret_that_is_none_is_refused_and_not_shown(secret):
    with pytest.raises(InvalidOption, match="not shown"):
        HttpSubmitter("https://runner", secret=secret)


@pytest.mark.parametrize("timeout", [5, timedelta(0), None])
def test_a_timeout_is_a_timedelta_of_more_than_zero(timeout):
    with pytest.raises(InvalidOption, match="timeout"):
        HttpSubmitter("https://runner", secret=SECRET, timeout=timeout)


@pytest.mark.parametrize(("said", "seconds"), [("0", 1), ("7", 7), ("9999999999", 60)])
async def test_a_runner_says_within_bounds_when_to_ask_again(said, seconds):
    with pytest.raises(NoRoom) as busy:
        await _refuse_unless_taken(httpx.Response(503, headers={"Retry-After": said}))
    assert (busy.value.after, busy.value.or_notice) == (timedelta(seconds=seconds), True)


@pytest.mark.parametrize(
    ("status", "or_notice", "train_only"), [(503, True, False), (429, True, True), (422, False, True)]
)
async def test_a_runner_says_who_has_to_wait_and_for_what(status, or_notice, train_only):
    with pytest.raises(NoRoom) as busy:
        await _refuse_unless_taken(httpx.Response(status, headers={"Retry-After": "1"}))
    assert (busy.value.or_notice, busy.value.train_only) == (or_notice, train_only)


@pytest.mark.parametrize("status", [503, 429, 422])
async def test_an_answer_of_somebody_on_the_way_is_a_failed_submit(status):
    request = httpx.Request("POST", "https://runner/executions")
    with pytest.raises(SubmitRefused, match=f"HTTP {status} from https://runner/: gone"):
        await _refuse_unless_taken(httpx.Response(status, content=b"gone", request=request))


def test_without_httpx_it_is_refused_where_it_is_chosen(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "httpx" else find(name))
    with pytest.raises(PackageMissing, match="pip install httpx"):
        HttpSubmitter("https://runner", secret=SECRET)
