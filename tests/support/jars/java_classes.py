"""What Java need not do again at every start: load Kafka's classes, and compile our programs. Kept in the cache of the jars.

An archive of loaded classes (class data sharing) is made once for each Java and set of jars, by a program that uses Kafka's
server and clients. Java takes it for every class path that begins with these jars: it maps the classes instead of reading and
verifying them. CPU seconds without and with it: to format a directory 1.1 and 0.6, to start and stop a server 2.8 and 1.6.
A program that Java compiles at its start takes 0.7 more than one that is compiled.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

from tests.support.jars.maven_jars import cache_folder, locked
from tests.support.servers.kafka_server import HANG_S, QUICK_JVM_FLAGS, default_properties, free_ports, properties_text

PROGRAM = Path(__file__).parents[1] / "java" / "LoadClasses.java"


def class_archive(java: str, jars: Sequence[str]) -> Path | None:
    """The archive for a class path that begins with `jars`, made on first use. None where this Java makes none."""
    archive = cache_folder() / "class-archives" / f"{_identity([java, *jars], PROGRAM)}.jsa"
    if not archive.exists():
        archive.parent.mkdir(parents=True, exist_ok=True)
        with locked(archive.with_suffix(".lock")):
            if not archive.exists():
                _make(java, jars, archive)
    return archive if archive.exists() and archive.stat().st_size else None


def compiled(java: str, classpath: str, source: Path) -> Path | None:
    """A folder with the classes of `source`, compiled on first use. None if there is no compiler."""
    beside_java = Path(java).resolve().parent
    compiler = shutil.which("javac", path=str(beside_java)) or shutil.which("javac")
    if compiler is None:
        return None
    folder = cache_folder() / "java-programs" / f"{source.stem}-{_identity([compiler, *classpath.split(os.pathsep)], source)}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.with_suffix(".lock")):
            if not folder.exists():
                _compile(compiler, classpath, source, folder)
    return folder


def _compile(compiler: str, classpath: str, source: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}-", dir=folder.parent) as part:
        command = [compiler, "-J-XX:TieredStopAtLevel=1", "-cp", classpath, "-d", f"{part}/classes", str(source)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * HANG_S)
        assert done.returncode == 0, f"javac {source.name}:\n{done.stdout}{done.stderr}"
        (Path(part) / "classes").rename(folder)


def _identity(files: Sequence[str], source: Path) -> str:
    """Java refuses an archive of another Java or of other jars: each has its own. The age of `source` is of no interest."""
    found = [Path(each).resolve() for each in files]
    facts = [(str(each), each.stat().st_size, each.stat().st_mtime_ns) for each in found]
    return hashlib.sha256(repr(facts).encode() + source.read_bytes()).hexdigest()[:16]


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
