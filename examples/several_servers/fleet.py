"""Three servers as processes, work for them, and one that is killed on the way: everything is done in the end."""

import asyncio
import os
import signal
import sys
import time

from jobs import app, resize

SHORT = {"INTERLOCK_LEASE": "2s", "INTERLOCK_HEARTBEAT": "500ms", "INTERLOCK_RECOVERY_INTERVAL": "300ms"}
HERE = {"PYTHONPATH": os.path.dirname(os.path.abspath(__file__))}
SERVERS = ("server-1", "server-2", "server-3")
PICTURES = int(os.environ.get("PICTURES", "30"))


async def start(name: str) -> asyncio.subprocess.Process:
    command = [sys.executable, "-m", "interlock", "-a", "jobs:app", "run", "--server-name", name]
    env = os.environ | SHORT | HERE | {"INTERLOCK_WORKER_SLOTS": "4", "INTERLOCK_SHUTDOWN_TIMEOUT": "5s"}
    return await asyncio.create_subprocess_exec(*command, env=env, stderr=asyncio.subprocess.DEVNULL)


async def main() -> None:
    await app.aapply_schema()
    async with app:
        servers = [await start(name) for name in SERVERS]
        try:
            while len(await app.aservers()) < len(SERVERS):
                await asyncio.sleep(0.1)
            began = time.monotonic()
            handles = await app.aenqueue_many([resize.bind(number) for number in range(PICTURES)])
            await asyncio.sleep(0.5)
            servers[0].send_signal(signal.SIGKILL)
            print("killed server-1 while it worked")
            results = [await handle.aresult(timeout=60) for handle in handles]
            print(f"{len(results)} of {PICTURES} pictures in {time.monotonic() - began:.1f} s")
        finally:
            for server in servers:
                if server.returncode is None:
                    server.terminate()
            await asyncio.gather(*(server.wait() for server in servers))


if __name__ == "__main__":
    asyncio.run(main())
