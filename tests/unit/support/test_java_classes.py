"""Java classes in the cache: archives that Java takes, or does without, and programs that are compiled once."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.jars import java_classes
from tests.support.servers.apache_kafka import JAVA_SOURCES, ApacheKafka
from tests.support.servers.kafka_server import SERVER_JVM_FLAGS


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("OTTLA_CACHE", str(tmp_path))
    return tmp_path


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
    assert java_classes.class_archive(java, []) is None
    assert [path.stat().st_size for path in cache.glob("class-archives/*.jsa")] == [0]
    monkeypatch.setattr(java_classes, "_make", None)
    assert java_classes.class_archive(java, []) is None


def test_java_that_fails_is_asked_again(cache: Path) -> None:
    with pytest.warns(UserWarning, match="no archive of Java classes"):
        assert java_classes.class_archive(str(shutil.which("false")), []) is None
    assert list(cache.glob("class-archives/*.jsa")) == []


@pytest.mark.slow
def test_programs_are_compiled_once(apache_kafka: ApacheKafka, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flag, classpath, main = apache_kafka.program(JAVA_SOURCES / "FeatureOracle.java")
    folder = Path(classpath.rpartition(":")[2])
    assert (flag, main) == ("-cp", "FeatureOracle")
    assert folder.parent == cache / "java-programs"
    assert (folder / "FeatureOracle.class").exists()
    monkeypatch.setattr(java_classes, "_compile", None)
    assert apache_kafka.program(JAVA_SOURCES / "FeatureOracle.java") == [flag, classpath, main]


@pytest.mark.slow
def test_programs_of_a_test_are_compiled_as_they_start(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    source = tmp_path / "Hello.java"
    source.write_text('class Other { public static void main(String[] words) { System.out.print("hello"); } }')
    assert apache_kafka.program(source)[2] == str(source)
    assert apache_kafka.run_java(source).stdout == "hello"


@pytest.mark.slow
def test_program_that_cannot_be_compiled_says_why(apache_kafka: ApacheKafka, cache: Path, tmp_path: Path) -> None:
    source = tmp_path / "Wrong.java"
    source.write_text("class Wrong { int number = hello; }")
    with pytest.raises(AssertionError, match=r"javac Wrong.java:(.|\n)*cannot find symbol"):
        java_classes.compiled(apache_kafka.java, apache_kafka.classpath, source)
    assert not list(cache.glob("java-programs/*/*.class"))
