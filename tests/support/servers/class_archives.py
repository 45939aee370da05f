"""Archives of loaded Java classes (class data sharing): a process maps Kafka's classes instead of reading and verifying them.

An archive is made once for each Java and set of jars, by a program that uses Kafka's server and clients, and is kept in the
cache of the jars. Java takes it for every class path that begins with these jars. CPU seconds without and with it: to format a
directory 1.1 and 0.6, to start and stop a server 2.8 and 1.6.
"""

import hashlib
import os
import subprocess
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

from tests.support.servers.kafka_server import HANG_S, QUICK_JVM_FLAGS, default_properties, free_ports, properties_text
from tests.support.servers.maven_jars import cache_folder, locked

PROGRAM = Path(__file__).parents[1] / "java" / "LoadClasses.java"


def class_archive(java: str, jars: Sequence[str]) -> Path | None:
    """The archive for a class path that begins with `jars`, made on first use. None where this Java makes none."""
    folder = cache_folder() / "class-archives"
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"{_identity(java, jars)}.jsa"
    if not archive.exists():
        with locked(archive.with_suffix(".lock")):
            if not archive.exists():
                _make(java, jars, archive)
    return archive if archive.exists() and archive.stat().st_size else None


def _identity(java: str, jars: Sequence[str]) -> str:
    """Java refuses an archive of another Java or of other jars: each has its own."""
    files = [Path(java).resolve(), *map(Path, jars)]
    facts = [(str(each), each.stat().st_size, each.stat().st_mtime_ns) for each in files]
    return hashlib.sha256(repr(facts).encode() + PROGRAM.read_bytes()).hexdigest()[:16]


def _make(java: str, jars: Sequence[str], archive: Path) -> None:
    """Run the program that loads the classes. A Java that leaves no archive leaves an empty file: it is not tried again."""
    broker_port, controller_port = free_ports(2)
    with tempfile.TemporaryDirectory(prefix="ottla-classes-", dir=archive.parent) as folder:
        config, part = Path(folder) / "server.properties", Path(folder) / "part"
        config.write_text(properties_text(default_properties(Path(folder) / "data", broker_port, controller_port)))
        command = [java, *QUICK_JVM_FLAGS, f"-XX:ArchiveClassesAtExit={part}", "-cp", os.pathsep.join(jars), str(PROGRAM)]
        try:
            done = subprocess.run(
                [*command, str(config), f"127.0.0.1:{broker_port}"], capture_output=True, text=True, timeout=2 * HANG_S
            )
        except subprocess.TimeoutExpired as late:
            warnings.warn(f"no archive of Java classes, tests will be slower: {late}", stacklevel=2)
            return
        if done.returncode != 0:
            warnings.warn(f"no archive of Java classes, tests will be slower: {done.stderr[-2000:]}", stacklevel=2)
            return
        part.touch()
        part.rename(archive)
