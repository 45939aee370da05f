"""pytest fixtures with Kafka brokers. Loaded wherever Ottla is installed, so it imports nothing of Ottla's until one is used.

kafka_broker           a broker for one test; `@pytest.mark.kafka_broker(config={…}, process=True)` configures it
kafka_session_broker   one broker for all tests of a run (with pytest-xdist: of a worker); faults end with their test
kafka_cluster          a cluster of three nodes for one test; `@pytest.mark.kafka_cluster(nodes=5, config={…})` configures it
kafka_topic            the name of a new topic where the test needs it; `@pytest.mark.kafka_topic(partitions=3)`

The report of a failed test shows what happened in its brokers since it began: active faults and the requests that they hold,
the clients' last requests, the last lines of the log. Of an error that Ottla raised, it shows the test's own frames only.
"""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ottla.testing import Broker, Cluster

__tracebackhide__ = True  # for pytest: an error in a fixture is shown without our frames

LINES_SHOWN = 40
REQUESTS_SHOWN = 25
NO_LINES = "(no request was refused, and nothing was logged since the test began)"
TOPIC_NAME_MAX = 200
_numbers = count(1)
_USED: pytest.StashKey[list[Broker | Cluster]] = pytest.StashKey()
"""On a test: the brokers and clusters it uses, also through other fixtures. On the session: its broker."""
_BEGAN: pytest.StashKey[float] = pytest.StashKey()
"""On a test: when its setup began."""
_MODULES = ("ottla.testing.broker", "ottla.testing.cluster.cluster")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ottla", "Kafka brokers for tests (Ottla)")
    group.addoption(
        "--kafka-broker-process", action="store_true", help="Run Kafka brokers in child processes instead of threads."
    )
    parser.addini("kafka_broker_config", "Settings of all Kafka brokers, one NAME=VALUE per line.", type="linelist", default=[])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "kafka_broker(config={}, process=False, security=False): options of the test's kafka_broker"
    )
    config.addinivalue_line("markers", "kafka_cluster(nodes=3, config={}): options of the test's kafka_cluster")
    config.addinivalue_line("markers", "kafka_topic(partitions=1, config={}): options of the test's kafka_topic")


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A Kafka broker for this test alone: `kafka_broker.bootstrap_servers`."""
    options: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers("kafka_broker"))):
        options.update(_arguments(marker, "config", "process", "port", "data", "security"))
    with _broker(request.config, **options) as broker:
        _note(request.node, broker)
        yield broker


@pytest.fixture(scope="session")
def kafka_session_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """One Kafka broker for all tests; use `kafka_topic` to get a topic for one test."""
    with _broker(request.config) as broker:
        _note(request.session, broker)
        yield broker


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A Kafka cluster of three nodes for this test alone: `kafka_cluster.bootstrap_servers`."""
    from ottla.testing import Cluster

    options: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers("kafka_cluster"))):
        options.update(_arguments(marker, "nodes", "config", "data"))
    with Cluster({**_settings(request.config), **options.pop("config", {})}, **options) as cluster:
        _note(request.node, cluster)
        yield cluster


@pytest.fixture
def kafka_topic(request: pytest.FixtureRequest) -> Iterator[str]:
    """A new topic, in `kafka_broker` or `kafka_cluster` if the test uses that, else in `kafka_session_broker`."""
    own = [name for name in ("kafka_broker", "kafka_cluster") if name in request.fixturenames]
    name = own[0] if own else "kafka_session_broker"
    broker: Broker | Cluster = request.getfixturevalue(name)
    _note(request.node, broker)
    marker = request.node.get_closest_marker("kafka_topic")
    topic = f"{re.sub('[^a-zA-Z0-9_-]', '-', request.node.name)[:TOPIC_NAME_MAX]}-{next(_numbers)}"
    broker.create_topic(topic, **({} if marker is None else _arguments(marker, "partitions", "config")))
    yield topic
    if broker.is_running and topic in broker.topics():
        broker.delete_topic(topic)


def _broker(pytestconfig: pytest.Config, **options: Any) -> Broker:
    from ottla.testing import Broker

    return Broker(
        {**_settings(pytestconfig), **options.pop("config", {})},
        process=options.pop("process", pytestconfig.getoption("--kafka-broker-process")),
        **options,
    )


def _settings(pytestconfig: pytest.Config) -> dict[str, str]:
    return dict(_setting(line) for line in pytestconfig.getini("kafka_broker_config"))


def _arguments(marker: pytest.Mark, *names: str) -> dict[str, Any]:
    known = ", ".join(f"{name}=…" for name in names)
    if marker.args:
        raise pytest.UsageError(f"{marker.name} takes named arguments only: {known}")
    for name in marker.kwargs:
        if name not in names:
            raise pytest.UsageError(f"{marker.name} has no argument {name}=…; there are {known}")
    return dict(marker.kwargs)


def _setting(line: str) -> tuple[str, str]:
    name, separator, value = line.partition("=")
    if not separator:
        raise pytest.UsageError(f"kafka_broker_config: {line!r} is no setting; write NAME=VALUE")
    return name.strip(), value.strip()


def _note(node: pytest.Item | pytest.Session, broker: Broker | Cluster) -> None:
    node.stash.setdefault(_USED, []).append(broker)


def _brokers(item: pytest.Item) -> list[Broker | Cluster]:
    """The brokers and clusters that a test uses, through these fixtures or its own, each once. Imports nothing of Ottla's."""
    noted: list[Broker | Cluster] = item.stash.get(_USED, [])
    if "kafka_session_broker" in getattr(item, "fixturenames", ()):
        noted = noted + item.session.stash.get(_USED, [])
    values = [*getattr(item, "funcargs", {}).values(), *noted]
    found = [value for value in values if type(value).__module__ in _MODULES and hasattr(value, "_report")]
    return list({id(broker): broker for broker in found}.values())


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_BEGAN] = time.time()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Add what happened in its brokers to the report of a failed test."""
    if call.excinfo is not None:
        _hide_frames(call.excinfo)
    outcome = yield
    report: pytest.TestReport = outcome.get_result()
    if report.failed and call.when != "teardown":
        for broker in _brokers(item):
            report.sections += _sections(broker, item.stash.get(_BEGAN, 0.0))


def _sections(broker: Broker | Cluster, since: float) -> Iterator[tuple[str, str]]:
    told = broker._report(since)
    if told is None:
        return
    if told.faults:
        yield f"Kafka broker, faults ({broker!r})", "\n".join(told.faults)
    if told.requests:
        yield f"Kafka broker, last requests of clients ({broker!r})", "\n".join(told.requests[-REQUESTS_SHOWN:])
    yield f"Kafka broker, last lines of its log ({broker!r})", "\n".join(told.log[-LINES_SHOWN:]) or NO_LINES


def _hide_frames(raised: pytest.ExceptionInfo[BaseException]) -> None:
    """Let pytest hide Ottla's frames below an error that it raised on purpose."""
    for entry in raised.traceback:
        names = entry.frame.f_globals
        if str(names.get("__name__", "")).startswith("ottla."):
            names.setdefault("__tracebackhide__", _is_deliberate)  # pytest looks for it there, and calls it


def _is_deliberate(raised: pytest.ExceptionInfo[BaseException]) -> bool:
    """Whether it is an error for the user. Other exceptions in Ottla's code may be bugs: all of their frames are shown."""
    from ottla.errors import BrokenInvariant, OttlaError

    return isinstance(raised.value, OttlaError) and not isinstance(raised.value, BrokenInvariant)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Remove the faults of the session's broker, which other tests will use."""
    broker = getattr(item, "funcargs", {}).get("kafka_session_broker")
    if broker is not None and broker.is_running:
        broker.faults.clear()
