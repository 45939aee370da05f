"""Fixtures for every test.

`apache_kafka` is Apache Kafka 4.3.0 itself. A test that asks for it is marked `kafka`; where Java or Maven is missing it is
skipped with the reason. With CI in the environment such a skip is a failure, so that a suite that no longer compares with
Apache Kafka does not pass. Other skips of such a test, for a known limitation of a server, stay skips.

Hypothesis runs with one of two profiles. `fixed`, the default, draws the same few examples in every run. `random` draws more,
others each time: `make test-all` chooses it with `--hypothesis-profile=random`.
"""

import contextlib
import gc
import importlib
import os
import pkgutil
import signal
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings
from tests.support.cases.examples import DEFAULT
from tests.support.servers.apache_kafka import ApacheKafka, KafkaUnavailable
from tests.support.servers.keeping import keep

import ottla

# No limits on time in either: how long an example takes depends on what else the machine does.
settings.register_profile(
    "fixed",
    max_examples=30,
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "random",
    max_examples=DEFAULT,
    derandomize=False,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fixed")

# A process that makes the archive of Spark's classes would outlive the tests.
os.environ.setdefault("OTTLA_SPARK_ARCHIVE", "off")


def pytest_configure(config: pytest.Config) -> None:
    """Make children interruptible, and let the keeper end what the tests start, however this process ends."""
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            # Shells make background jobs ignore SIGINT, nohup SIGHUP, and children inherit that. A handler is not inherited:
            # this process still does nothing, its children begin with the default.
            signal.signal(number, lambda number, frame: None)
    keep()
    if not getattr(config.option, "numprocesses", None):  # the process that hands out tests to workers collects none
        # Until all tests are collected: what that creates stays, and walking it again and again takes a quarter of the time.
        gc.disable()


def import_all() -> None:
    """Import every module of Ottla, so that it is compiled as pytest compiles the modules of its plugins.

    Two threads that do this at once can fail in Python 3.11 (SystemError: AST constructor recursion depth mismatch), and a
    broker in a thread of the test's process imports its modules when they are first needed.
    """
    for found in pkgutil.walk_packages(ottla.__path__, "ottla.", onerror=lambda name: None):
        if not found.name.endswith("__main__"):
            with contextlib.suppress(ImportError, OSError):
                importlib.import_module(found.name)


def in_ci() -> bool:
    """Whether the environment says that this is a CI run."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false", "no")


class Unavailable(pytest.skip.Exception):
    """Skips a test because the server or program that it needs cannot be had here. In CI that is a failure."""

    is_unavailable = True


@pytest.fixture(scope="session")
def apache_kafka() -> ApacheKafka:
    """Apache Kafka 4.3.0: its tools, its server, Java programs on its class path."""
    try:
        return ApacheKafka.obtain()
    except KafkaUnavailable as reason:
        raise Unavailable(str(reason)) from None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need Apache Kafka, so that `-m 'not kafka'` leaves them out."""
    for item in items:
        if "apache_kafka" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.kafka)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Hide the collected tests from the garbage collector: walking 14,000 of them makes each full collection take 0.3 s."""
    if session.config.option.collectonly:  # the run that compiles (tools/run_tests.py)
        import_all()
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI, report a `kafka` test that was skipped because its server cannot be had as failed."""
    report = yield
    # By attribute: a conftest.py can be loaded twice, under two names, and its classes then differ.
    is_unavailable = call.excinfo is not None and getattr(call.excinfo.value, "is_unavailable", False)
    if report.skipped and is_unavailable and item.get_closest_marker("kafka") is not None and in_ci():
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} needs Apache Kafka, and in CI it must not be skipped. {reason}"
    return report
