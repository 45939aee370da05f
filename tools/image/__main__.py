"""`python -m tools.image build FOLDER [NAME=VALUE …]` and `python -m tools.image run FOLDER [NAME=VALUE …] [-- COMMAND …]`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tools.image.build import BuildFailed, build
from tools.image.run import Container


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.image", description=__doc__)
    parser.add_argument("action", choices=("build", "run"))
    parser.add_argument("folder", type=Path, help="where the image is, or will be")
    parser.add_argument("variables", nargs="*", metavar="NAME=VALUE", help="build arguments, or variables of the container")
    parser.add_argument("--read-only", action="store_true", help="no writes but to volumes and /tmp")
    parser.add_argument("--user", help="UID:GID")
    own, command = sys.argv[1:], []
    if "--" in own:
        at = own.index("--")
        own, command = own[:at], own[at + 1 :]
    given = parser.parse_args(own)
    if os.geteuid() != 0:
        parser.error("this needs root: chroot, mounts and users")
    variables = dict(each.split("=", 1) for each in given.variables)
    if given.action == "build":
        given.folder.mkdir(parents=True, exist_ok=True)
        try:
            print(f"built {build(given.folder.resolve(), variables)}")
        except BuildFailed as failed:
            print(f"the image was not built: {failed}", file=sys.stderr)
            return 1
        return 0
    container = Container(
        given.folder.resolve(), command or None, environment=variables, user=given.user, is_read_only=given.read_only
    )
    with container:
        try:
            return container.process.wait()
        except KeyboardInterrupt:
            return container.stop()


if __name__ == "__main__":
    sys.exit(main())
