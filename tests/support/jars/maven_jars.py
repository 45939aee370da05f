"""Fetches jars from Maven Central into a local cache, for tests and benchmarks.

A folder of jars under $OTTLA_CACHE (or ~/.cache/ottla) is always complete: Maven copies into a folder beside it, which is then
renamed. A lock file lets two processes start at once; the second waits and finds the jars there. Nothing is removed; delete the
folder to fetch again.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


class JarsUnavailable(Exception):
    """Jars could not be fetched; the text says what is missing and how to get it."""


def cache_folder() -> Path:
    """The folder for downloads, kept between runs."""
    chosen = os.environ.get("OTTLA_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "ottla"


def fetch_with_maven(what: str, name: str, coordinates: Sequence[str], *, is_transitive: bool = True) -> list[Path]:
    """The jars of `coordinates` (group:artifact:version), with their dependencies if `is_transitive`, in the folder `name`."""
    folder = cache_folder() / name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.parent / f"{folder.name}.lock"):
            if not folder.is_dir():
                _copy(what, coordinates, folder, is_transitive)
    return sorted(folder.glob("*.jar"))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on `path`; the system releases it if this process dies."""
    with open(path, "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _copy(what: str, coordinates: Sequence[str], folder: Path, is_transitive: bool) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise JarsUnavailable(f"no mvn on PATH to fetch {what} with: install Maven 3.8 or newer")
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.", suffix=".part", dir=folder.parent) as part:
        project = Path(part) / "pom.xml"
        project.write_text(_project_text(coordinates, is_transitive))
        libs = Path(part) / "libs"
        command = [maven, "-B", "-q", "-f", str(project), COPY_DEPENDENCIES]
        command += ["-DincludeScope=runtime", f"-DoutputDirectory={libs}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
        wanted = [f"{artifact}-{version}.jar" for _, artifact, version in (each.split(":") for each in coordinates)]
        if done.returncode != 0 or not all((libs / each).is_file() for each in wanted):
            output = (done.stdout + done.stderr).strip()[-2000:]
            raise JarsUnavailable(f"Maven could not fetch {what} (exit {done.returncode}):\n{output}")
        libs.rename(folder)


def _project_text(coordinates: Sequence[str], is_transitive: bool) -> str:
    """A Maven project that only depends on `coordinates`."""
    everything = "<exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"
    excluded = "" if is_transitive else f"<exclusions>{everything}</exclusions>"
    dependencies = ""
    for coordinate in coordinates:
        group, artifact, version = coordinate.split(":")
        needed = f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        dependencies += f"<dependency>{needed}{excluded}</dependency>"
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>ottla.tests</groupId><artifactId>jars</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>\n"
    )
