"""Archives of Java classes: Java takes them, and does without where there is none."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.servers import class_archives
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import SERVER_JVM_FLAGS


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("OTTLA_CACHE", str(tmp_path))
    return tmp_path / "class-archives"


@pytest.mark.parametrize("classpath", ["classpath", "server_classpath"])
def test_classes_come_from_the_archive(apache_kafka: ApacheKafka, classpath: str, tmp_path: Path) -> None:
    (tmp_path / "of-ours").touch()
    command = [*apache_kafka.jvm(), "-Xlog:class+load", "-cp", f"{getattr(apache_kafka, classpath)}:{tmp_path}"]
    done = subprocess.run([*command, "org.apache.kafka.tools.TopicCommand", "--version"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if " org.apache.kafka." in line]
    shared = [line for line in lines if line.endswith("source: shared objects file (top)")]
    assert len(shared) > 0.9 * len(lines) > 10


def test_benchmarks_have_no_archive(apache_kafka: ApacheKafka) -> None:
    assert not [flag for flag in apache_kafka.jvm(SERVER_JVM_FLAGS) if "SharedArchive" in flag]


def test_java_that_makes_no_archive_is_not_asked_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = str(shutil.which("true"))
    assert class_archives.class_archive(java, []) is None
    assert [path.stat().st_size for path in cache.glob("*.jsa")] == [0]
    monkeypatch.setattr(class_archives, "_make", None)
    assert class_archives.class_archive(java, []) is None


def test_java_that_fails_is_asked_again(cache: Path) -> None:
    with pytest.warns(UserWarning, match="no archive of Java classes"):
        assert class_archives.class_archive(str(shutil.which("false")), []) is None
    assert list(cache.glob("*.jsa")) == []
