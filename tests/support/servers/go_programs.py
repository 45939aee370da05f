"""Programs in Go, from `tests/support/go/NAME`: built once, with their modules fetched from Go's registry.

    program = build_go_program("franz", folder)
    subprocess.run([program, server.bootstrap, "produce"])

`GoUnavailable` if there is no Go or no registry. Code that does not build raises another error.
"""

import os
import shutil
import subprocess
from pathlib import Path

from tests.support.jars.maven_jars import cache_folder

GO_SOURCES = Path(__file__).parents[1] / "go"
DEFAULT_PATH = "/usr/local/go/bin/go"
BUILD_TIMEOUT_S = 500


class GoUnavailable(Exception):
    """Go or a module of the program is not available; the text says which."""


def build_go_program(name: str, folder: Path) -> Path:
    """The path of the program, built into `folder`."""
    go = shutil.which("go") or shutil.which(DEFAULT_PATH)
    if go is None:
        raise GoUnavailable("Go is not installed: there is neither `go` in the path nor " + DEFAULT_PATH)
    fetched = _go(go, name, "mod", "download")
    if fetched.returncode != 0:
        raise GoUnavailable(f"the modules of tests/support/go/{name} cannot be fetched: {fetched.stderr.strip()[-1000:]}")
    program = folder / name
    built = _go(go, name, "build", "-o", str(program), ".")
    assert built.returncode == 0, f"tests/support/go/{name} does not build:\n{built.stderr}"
    return program


def _go(go: str, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Go without a C compiler and without version control, so that the result depends on the sources alone."""
    environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false", "GOWORK": "off"}
    return subprocess.run(
        [go, *arguments],
        cwd=GO_SOURCES / name,
        env=environment,
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
        check=False,
    )


def install_go_tool(module: str, version: str) -> Path:
    """The path of a public program in Go, such as helm: built once, and kept in the cache. Its first build takes minutes."""
    folder = cache_folder() / "go-tools" / f"{module.replace('/', '+')}@{version}"
    program = folder / module.rpartition("/")[2]
    if program.exists():
        return program
    go = shutil.which("go") or shutil.which(DEFAULT_PATH)
    if go is None:
        raise GoUnavailable("Go is not installed: there is neither `go` in the path nor " + DEFAULT_PATH)
    environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false", "GOBIN": str(folder)}
    command = [go, "install", f"{module}@{version}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise GoUnavailable(f"{module} {version} cannot be built: {done.stderr.strip()[-1000:]}")
    return program
