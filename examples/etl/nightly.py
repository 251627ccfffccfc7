"""A nightly load: extract, then load each table, then the report; no weekends, no holidays, at most two at a time."""

from datetime import date, timedelta

from interlock import Backoff, Interlock, cron, current_execution, exclude

app = Interlock(name="etl")

etl = app.group("etl", max_active_jobs=2, priority=20)
SUSPICIOUSLY_FEW = 10
HOLIDAYS = [exclude.dates(date(2026, 12, 25), date(2027, 1, 1))]
OFFICE_DAYS = [exclude.weekdays("sat", "sun"), *HOLIDAYS]


@app.train(max_attempts=4, retry=Backoff(timedelta(minutes=1)), timeout=timedelta(minutes=10))
async def extract(source: str) -> int:
    """Answers the number of rows; asks for the repair run when there are too few."""
    rows = {"orders": 1200, "customers": 3}.get(source, 0)
    if rows < SUSPICIOUSLY_FEW:
        await current_execution().aactivate(f"repair-{source}", repair.bind(source=source, found=rows))
    return rows


@app.train
async def load(table: str, fmt: str = "parquet") -> str:
    return f"{table}.{fmt}"


@app.train
async def repair(source: str, found: int = 0) -> str:
    return f"{source}: {found} rows looked too few; fetched again"


@app.train(retention=timedelta(days=365))
async def report(title: str) -> str:
    return f"report: {title}"


for source in ("orders", "customers"):
    extracted = app.schedule(
        f"extract-{source}",
        extract.bind(source),
        cron("0 2 * * *", tz="Europe/Berlin"),
        group=etl,
        exclude=OFFICE_DAYS,
        misfire="fire_once",
    )
    extracted.then(f"repair-{source}", repair.bind(source), group=etl, dormant=True)
    loaded = extracted.then(f"load-{source}", load.bind(source), group=etl)
    if source == "orders":
        loaded.then("sales-report", report.bind("sales"), group=etl)


if __name__ == "__main__":
    app.run()
