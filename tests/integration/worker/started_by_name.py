"""Started with `python -m`, which is the only name under which this module can be imported."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from uuid import uuid4

from interlock import Interlock
from interlock.model.execution import Claim
from interlock.worker.job import Job
from interlock.worker.processes import Processes

from .process_trains import half

app = Interlock("postgresql://nobody@localhost:1/none")


@app.train(process=True)
def quarter(n: int) -> int:
    return half(half(n))


async def main() -> None:
    claim = Claim(1, "quarter", json.dumps({"n": 12}), 1, 1, None, datetime.now(UTC), None, None, None, keyed=False)
    processes = Processes()
    print(await processes.run(Job(claim, quarter, token=uuid4(), server=uuid4(), services=None)))
    await processes.close()


if __name__ == "__main__":
    asyncio.run(main())
