"""Runs the demo of a cluster. `--quick`: with less load, for tests."""

from __future__ import annotations

import sys

from tools.demo.cluster.story import Story
from tools.demo.processes import demo_folder

from ottla.errors import OttlaError

QUICK = "--quick"


def main() -> None:
    try:
        with demo_folder() as folder:
            Story(folder, records=200 if QUICK in sys.argv[1:] else 1_500).run()
    except OttlaError as error:
        sys.exit(f"demo: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
