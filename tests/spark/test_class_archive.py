"""The archive of Spark's classes: where it is, when it is used, and that a failure is remembered."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ottla.spark import class_archive
from ottla.spark.class_archive import archive_path, java_options, make, make_in_background
from ottla.spark.java import Java, find_java


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Java:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(class_archive.SWITCH, raising=False)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("")
    return Java(str(tmp_path), 17, "JAVA_HOME")


def test_archive_is_used_once_it_is_there(java: Java, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive_path(java)
    assert path is not None
    assert java_options(java) == ""
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x")
    assert java_options(java).startswith(f"-XX:SharedArchiveFile={path} ")
    monkeypatch.setenv(class_archive.SWITCH, "off")
    assert java_options(java) == ""


def test_another_java_needs_another_archive(java: Java) -> None:
    before = archive_path(java)
    os.utime(Path(java.home) / "bin" / "java", ns=(1, 1))
    assert archive_path(java) != before


def test_archive_is_made_in_the_background_once(java: Java, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **options: started.append(command))
    assert make_in_background(java)
    assert started == [[sys.executable, "-m", "ottla.spark.class_archive"]]
    path = archive_path(java)
    assert path is not None
    monkeypatch.setattr(class_archive, "_dump", lambda made, folder: made.read_bytes())
    assert not make(path)
    assert "FileNotFoundError" in path.with_suffix(".failed").read_text()
    assert not make_in_background(java)


@pytest.mark.slow
def test_spark_starts_from_the_archive_that_was_made(tmp_path: Path) -> None:
    variables = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    variables.pop(class_archive.SWITCH, None)
    variables.pop("JDK_JAVA_OPTIONS", None)
    done = subprocess.run([sys.executable, "-m", "ottla.spark.class_archive"], env=variables, timeout=500, check=False)
    assert done.returncode == 0, [each.read_text() for each in tmp_path.rglob("*.failed")]
    (archive,) = (tmp_path / "ottla").glob("*.jsa")
    java = Path(find_java().home) / "bin" / "java"
    seen = subprocess.run(
        [str(java), f"-XX:SharedArchiveFile={archive}", "-Xlog:cds", "-Xshare:auto", "-version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "trying to map" in seen.stdout
    assert archive.stat().st_size > 50_000_000
