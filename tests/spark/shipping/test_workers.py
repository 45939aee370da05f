"""What workers have, and the sentences about what they lack."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest

import ottla
from ottla.spark.shipping import WorkerFacts, WorkersUnfit, check_facts, check_workers, failure, look

GOOD = WorkerFacts("h", "/usr/bin/python3", "26.0", ottla.__version__, "", None)


def test_workers_of_this_machine_say_what_they_have(spark: Any) -> None:
    for worker in look(spark, 2):
        assert worker.executable == sys.executable
        assert worker.ottla == ottla.__version__
        assert worker.pyarrow
        assert worker.problem == ""


def test_sound_workers_say_nothing() -> None:
    assert check_facts([GOOD, replace(GOOD, installed=ottla.__version__)]) == []


def test_worker_without_pyarrow_is_refused() -> None:
    with pytest.raises(WorkersUnfit, match=r"a worker \(/usr/bin/python3 on h\) has no pyarrow.*PYSPARK_PYTHON"):
        check_facts([GOOD, replace(GOOD, pyarrow=None)])


def test_worker_of_another_platform_is_refused() -> None:
    with pytest.raises(WorkersUnfit, match=r"cannot load ottla \(ImportError: cramjam\).*pip install 'ottla\[spark\]=="):
        check_facts([replace(GOOD, ottla=None, problem="ImportError: cramjam")])


def test_server_without_ottla_is_told_that_nothing_is_shipped() -> None:
    with pytest.raises(WorkersUnfit, match=r"the Spark Connect server .*cannot load ottla.*pip install 'ottla\[spark\]=="):
        check_facts([replace(GOOD, ottla=None, problem="ModuleNotFoundError: ottla")], is_remote=True)


def test_worker_with_another_version_is_refused_or_told() -> None:
    with pytest.raises(WorkersUnfit, match=r"has ottla 0\.0\.1 and this one has .*: they must be the same"):
        check_facts([replace(GOOD, ottla="0.0.1")])
    (notice,) = check_facts([replace(GOOD, installed="0.0.1")])
    assert notice.endswith(f"has ottla 0.0.1; this run ships and uses {ottla.__version__}.")


def test_pages_of_spark_become_a_sentence() -> None:
    mismatch = "Traceback\n[X] Python in worker has different version: 3.12 than that in driver: 3.11, PySpark cannot run"
    assert failure(Exception(mismatch)).startswith(
        "the workers have Python 3.12 and this is Python 3.11: they must be the same"
    )
    missing = 'Task 2 failed: java.io.IOException: Cannot run program "python3.99": error=2, No such file\n\tat java.lang'
    assert failure(Exception(missing)).startswith("the workers have no python3.99: install Python 3.")
    broken = "An error occurred\n: org.X: Job aborted\nError from python worker:\n  python3.10: command not found\nPYTHONPATH:"
    assert failure(Exception(broken)) == "the workers do not start: python3.10: command not found"
    assert failure(Exception("Something else\n\tat java.lang")) == "the workers do not start: Something else"


def test_job_that_fails_is_one_sentence() -> None:
    class Broken:
        def range(self, *numbers: int) -> Any:
            raise RuntimeError('Cannot run program "python3.99": error=2')

    with pytest.raises(WorkersUnfit, match=r"the workers have no python3\.99"):
        check_workers(Broken(), is_remote=True)
