"""Fetches Apache Kafka's jars from Maven Central into a local cache.

One folder per set of jar groups under $OTTLA_CACHE (or ~/.cache/ottla): `kafka-4.3.0-core`, `kafka-4.3.0-core-streams`. A
folder is always complete: Maven copies into a folder beside it, which is then renamed. A lock file lets two processes start at
once; the second waits and finds the jars there. Nothing is removed; delete the folder to fetch again.
"""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.servers.kafka_server import HANG_S

KAFKA_VERSION = "4.3.0"
SLF4J_VERSION = "1.7.36"
JAVA_MAJOR_MIN = 17
COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"

GROUPS: dict[str, tuple[str, ...]] = {
    "core": (
        f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}",
        f"org.apache.kafka:kafka-tools:{KAFKA_VERSION}",
        # Tools log nothing, the server logs: both bindings are fetched, and each class path has one of them.
        f"org.slf4j:slf4j-nop:{SLF4J_VERSION}",
        f"org.slf4j:slf4j-simple:{SLF4J_VERSION}",
    ),
    "streams": (f"org.apache.kafka:kafka-streams:{KAFKA_VERSION}",),
    "connect": (f"org.apache.kafka:connect-runtime:{KAFKA_VERSION}", f"org.apache.kafka:connect-file:{KAFKA_VERSION}"),
    "mirror": (f"org.apache.kafka:connect-mirror:{KAFKA_VERSION}",),
}


class KafkaUnavailable(Exception):
    """Apache Kafka is not available; the text says what is missing and how to get it."""


def cache_folder() -> Path:
    """The folder for downloads, kept between runs."""
    chosen = os.environ.get("OTTLA_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "ottla"


def find_java() -> str:
    """The path of a Java that is new enough."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else None
    java = java or shutil.which("java")
    if java is None:
        raise KafkaUnavailable(f"no java on PATH: install a JDK {JAVA_MAJOR_MIN} or newer")
    output = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=HANG_S, check=False).stderr
    match = re.search(r'version "(\d+)', output)
    if match is None or int(match[1]) < JAVA_MAJOR_MIN:
        first_line = output.strip().splitlines()[0] if output.strip() else "nothing"
        raise KafkaUnavailable(f"{java} is too old (it says {first_line}): install a JDK {JAVA_MAJOR_MIN} or newer")
    return java


def fetch_jars(groups: Sequence[str] = ("core",)) -> list[Path]:
    """The jars of `groups` with their dependencies, fetched on first use. `core` is always included."""
    wanted = ["core", *sorted(set(groups) - {"core"})]
    folder = cache_folder() / f"kafka-{KAFKA_VERSION}-{'-'.join(wanted)}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder.parent / f"{folder.name}.lock"):
            if not folder.is_dir():
                _copy_with_maven([coordinate for group in wanted for coordinate in GROUPS[group]], folder)
    return sorted(folder.glob("*.jar"))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on `path`; the system releases it if this process dies."""
    with open(path, "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _copy_with_maven(coordinates: Sequence[str], folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaUnavailable(f"no mvn on PATH to fetch Apache Kafka {KAFKA_VERSION} with: install Maven 3.8 or newer")
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.", suffix=".part", dir=folder.parent) as part:
        project = Path(part) / "pom.xml"
        project.write_text(_project_text(coordinates))
        libs = Path(part) / "libs"
        command = [maven, "-B", "-q", "-f", str(project), COPY_DEPENDENCIES]
        command += ["-DincludeScope=runtime", f"-DoutputDirectory={libs}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
        if done.returncode != 0 or not any(libs.glob("kafka_2.13-*.jar")):
            output = (done.stdout + done.stderr).strip()[-2000:]
            raise KafkaUnavailable(f"Maven could not fetch Apache Kafka {KAFKA_VERSION} (exit {done.returncode}):\n{output}")
        libs.rename(folder)


def _project_text(coordinates: Sequence[str]) -> str:
    """A Maven project that only depends on `coordinates` (group:artifact:version)."""
    dependencies = ""
    for coordinate in coordinates:
        group, artifact, version = coordinate.split(":")
        needed = f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        dependencies += f"<dependency>{needed}</dependency>"
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>ottla.tests</groupId><artifactId>apache-kafka</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>\n"
    )
