"""A server of the demo, in a process of its own."""

from __future__ import annotations

import sys

from interlock.cli.demo.world import build
from interlock.cli.tether import end_with_the_parent
from interlock.observe.logs import LogSubscriber, configure_logging

if __name__ == "__main__":
    end_with_the_parent()
    configure_logging(sys.stderr, "INFO", "human")
    app = build()
    app.events.subscribe(LogSubscriber())
    app.run()
