"""What mypy --strict must accept and must refuse where a user declares manifests.

A refusal is written as an ignore with its code: an ignore that suppresses nothing is itself an error, so every one of
them proves that the mistake is reported.
"""

from datetime import timedelta
from typing import Literal, assert_type

from interlock import Backoff, Interlock, cron, every, exclude, once
from interlock.manifests.refs import Group, ManifestRef, ManifestRefs
from interlock.testing import BlockingStepper, Stepper, stepper

app = Interlock(name="shop")


@app.train
async def greet(name: str, times: int = 1) -> str:
    return name * times


@app.train(group="etl", max_attempts=2)
def count(rows: list[int]) -> int:
    return len(rows)


etl = app.group("etl", max_active_jobs=3, priority=20, enabled=True)
assert_type(etl, Group)
assert_type(app.group("bare"), Group)
app.group("wrong", max_active_jobs="3")  # type: ignore[arg-type]
app.group("wrong", cap=3)  # type: ignore[call-arg]

extract = app.schedule(
    "extract",
    greet.bind("api"),
    every(hours=1),
    group=etl,
    tz="Europe/Berlin",
    variance=timedelta(minutes=2),
    exclude=[exclude.weekdays("sat", "sun"), exclude.window("22:00", "06:00")],
    misfire="skip",
    misfire_threshold=timedelta(minutes=5),
    max_attempts=3,
    retry=Backoff(timedelta(minutes=1)),
    timeout=timedelta(minutes=30),
    priority=40,
    enabled=False,
)
assert_type(extract, ManifestRef)
app.schedule("nightly", count.bind([1]), cron("0 3 * * *", tz="Europe/Berlin"), group="etl")
app.schedule("single", count.bind([]), once(after=timedelta(hours=1)))
app.schedule("by-hand", count.bind([]), None)
app.schedule("also-by-hand", count.bind([]))

app.schedule("wrong", greet.bind(3), every(hours=1))  # type: ignore[arg-type]
app.schedule("wrong", greet, every(hours=1))  # type: ignore[arg-type]
app.schedule("wrong", greet.bind("x"), "hourly")  # type: ignore[arg-type]
app.schedule("wrong", greet.bind("x"), every(hours="1"))  # type: ignore[arg-type]
app.schedule("wrong", greet.bind("x"), every(hours=1), grop="etl")  # type: ignore[call-arg]
app.schedule("wrong", greet.bind("x"), every(hours=1), misfire="panic")  # type: ignore[arg-type]
app.schedule("wrong", greet.bind("x"), every(hours=1), timeout=30)  # type: ignore[arg-type]
app.schedule("wrong", greet.bind("x"), every(hours=1), exclude=["sat"])  # type: ignore[list-item]
app.schedule("wrong", greet.bind("x"), every(hours=1), exclude=(e for e in [exclude.dates("2030-01-01")]))  # type: ignore[arg-type]

load = extract.then("load", count.bind([1]), max_attempts=1)
assert_type(load, ManifestRef)
assert_type(extract.then("repair", greet.bind("x"), dormant=True), ManifestRef)
extract.then("wrong", count.bind("rows"))  # type: ignore[arg-type]
extract.then("wrong", count.bind([]), every(hours=1))  # type: ignore[arg-type, call-arg]
extract.then("wrong", count.bind([]), asleep=True)  # type: ignore[call-arg]

tables = app.schedule_many("sync", [(table, greet.bind(table)) for table in ("a", "b")], every(minutes=5), group=etl)
assert_type(tables, ManifestRefs)
assert_type(tables["a"], ManifestRef)
assert_type(tables.then_many("check", [("a", greet.bind("a")), ("b", count.bind([]))]), ManifestRefs)
assert_type(extract.then_many("fan", ((n, count.bind([n])) for n in range(3)), dormant=True), ManifestRefs)
app.schedule_many("wrong", [greet.bind("x")], every(minutes=5))  # type: ignore[list-item]
app.schedule_many("wrong", [(1.5, greet.bind("x"))], every(minutes=5))  # type: ignore[list-item]


async def at_run_time() -> None:
    outcome = await app.aput_schedule("report", greet.bind("x"), cron("@daily"), priority=3)
    assert_type(outcome, Literal["created", "changed", "unchanged"])
    assert_type(app.put_schedule("after", greet.bind("x"), parent=extract), Literal["created", "changed", "unchanged"])
    await app.aput_schedule("after", greet.bind("x"), parent="extract", dormant=True)
    await app.aput_schedule("wrong", greet.bind(3), cron("@daily"))  # type: ignore[arg-type]
    await app.aput_schedule("wrong", greet.bind("x"), parent=3)  # type: ignore[arg-type]
    app.put_schedule("wrong", greet.bind("x"), grop="etl")  # type: ignore[call-arg]


async def in_tests() -> None:
    async with stepper(app) as step:
        assert_type(step, Stepper)
        assert_type(await step.drain(), int)
    with stepper(app, inline=True) as blocking:
        assert_type(blocking, BlockingStepper)
        assert_type(blocking.drain(), int)
    stepper(app, start="2030-01-01")  # type: ignore[arg-type]
