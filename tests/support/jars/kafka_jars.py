"""Apache Kafka's jars in the local cache (`maven_jars.py`): a folder per set of groups, such as `kafka-4.3.0-core-streams`."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.jars.maven_jars import JarsUnavailable, fetch_with_maven
from tests.support.servers.kafka_server import HANG_S

KAFKA_VERSION = "4.3.0"
SLF4J_VERSION = "1.7.36"
JAVA_MAJOR_MIN = 17

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
    try:
        return fetch_with_maven(
            f"Apache Kafka {KAFKA_VERSION}",
            f"kafka-{KAFKA_VERSION}-{'-'.join(wanted)}",
            [coordinate for group in wanted for coordinate in GROUPS[group]],
        )
    except JarsUnavailable as error:
        raise KafkaUnavailable(str(error)) from None
