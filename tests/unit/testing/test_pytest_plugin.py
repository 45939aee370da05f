"""The pytest plugin, in separate runs of pytest."""

import re
from pathlib import Path

import pytest
from tests.unit.testing.user_tests import run_pytest

USES = """
import pytest


@pytest.fixture(scope="session")
def ports():
    return []


def test_a_broker_of_its_own(kafka_broker):
    kafka_broker.produce("orders", "value")
    assert len(kafka_broker.await_records("orders", 1)) == 1


def test_another_broker(kafka_broker):
    assert kafka_broker.topics() == {}


@pytest.mark.kafka_broker(config={"num.partitions": 3}, process=True)
class TestMarked:
    def test_as_the_class_says(self, kafka_broker):
        kafka_broker.produce("orders", "value")
        assert kafka_broker.topics() == {"orders": 3}
        assert "process" in type(kafka_broker._engine._host).__module__

    @pytest.mark.kafka_broker(config={"num.partitions": 5})
    def test_the_nearer_marker_wins(self, kafka_broker, kafka_topic):
        kafka_broker.produce("orders", "value")
        assert kafka_broker.topics() == {"orders": 5, kafka_topic: 1}


@pytest.mark.parametrize("number", range(3))
def test_topics_of_one_broker(kafka_session_broker, kafka_topic, ports, number):
    ports.append(kafka_session_broker.port)
    assert len(set(ports)) == 1
    assert kafka_session_broker.topics() == {kafka_topic: 1}
    kafka_session_broker.produce(kafka_topic, "value")


@pytest.mark.kafka_topic(partitions=4, config={"cleanup.policy": "compact"})
def test_a_topic_as_marked(kafka_session_broker, kafka_topic):
    assert kafka_session_broker.topics()[kafka_topic] == 4


def test_a_fault_is_left_behind(kafka_session_broker):
    kafka_session_broker.faults.fail("Produce", "INVALID_RECORD")


def test_and_is_gone(kafka_session_broker, kafka_topic):
    from confluent_kafka import Producer

    outcomes = []
    producer = Producer({"bootstrap.servers": kafka_session_broker.bootstrap_servers})
    producer.produce(kafka_topic, b"value", on_delivery=lambda error, _: outcomes.append(error))
    producer.flush(10)
    assert outcomes == [None]
"""

CLUSTERS = """
import pytest


@pytest.mark.kafka_cluster(nodes=1, config={"num.partitions": 2})
class TestMarked:
    def test_as_marked(self, kafka_cluster, kafka_topic):
        kafka_cluster.produce("orders", "value")
        assert kafka_cluster.topics() == {"orders": 2, kafka_topic: 1}

    @pytest.mark.kafka_cluster(nodes=3)
    def test_the_nearer_marker_wins(self, kafka_cluster):
        assert len(kafka_cluster.nodes) == 3
        kafka_cluster.produce("orders", "value")
        assert kafka_cluster.topics() == {"orders": 2}


@pytest.mark.kafka_cluster(nodes=1)
def test_that_fails(kafka_cluster):
    kafka_cluster.node(1).kill()
    assert kafka_cluster.is_running
"""

FAILS = """
def test_that_fails(kafka_broker):
    from confluent_kafka import Producer

    kafka_broker.faults.fail("Produce", "INVALID_RECORD")
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers, "client.id": "my-app"})
    producer.produce("orders", b"value")
    producer.flush(10)
    assert len(kafka_broker.records("orders")) == 1


def test_that_hangs(kafka_broker):
    from ottla import Producer

    kafka_broker.create_topic("orders")
    hang = kafka_broker.faults.hang("Produce")
    kafka_broker.faults.fail("Fetch", "KAFKA_STORAGE_ERROR")
    producer = Producer(bootstrap_servers=kafka_broker.bootstrap_servers, client_id="my-app")
    try:
        sent = producer.send("orders", b"value")
        hang.await_hits(1, timeout=60)
        sent.result(0.1)
    finally:
        producer.close(0)
"""


def test_fixtures_markers_and_topics(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, USES)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "10 passed" in done.stdout


@pytest.mark.slow
def test_with_xdist_every_worker_has_its_own(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    done = run_pytest(tmp_path, USES, "-p", "xdist", "-n", "2")
    assert done.returncode == 0, done.stdout + done.stderr


def test_with_pytest_asyncio_in_strict_mode(tmp_path: Path) -> None:
    pytest.importorskip("pytest_asyncio")
    code = (
        "import pytest\n\n\n@pytest.mark.asyncio\nasync def test_it(kafka_broker, kafka_topic):\n"
        "    record = await kafka_broker.aio.produce(kafka_topic, 'value')\n"
        "    assert await kafka_broker.aio.await_records(kafka_topic, 1) == [record]\n"
    )
    done = run_pytest(tmp_path, code, "-p", "pytest_asyncio.plugin", ini="asyncio_mode = strict\n")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_failed_test_shows_faults_requests_and_the_log(tmp_path: Path) -> None:
    for options in ([], ["--kafka-broker-process"]):
        done = run_pytest(tmp_path, FAILS, *options)
        assert done.returncode == 1
        shown, hanging = done.stdout.split("test_that_hangs ___")
        assert "Kafka broker, last lines of its log (<Broker 127.0.0.1:" in shown
        assert "client id 'my-app'" in shown
        assert "INVALID_RECORD: a test asked for INVALID_RECORD" in shown
        assert "fail of Produce with INVALID_RECORD has met 1 request\n" in shown
        assert re.search(r"my-app \(127.0.0.1:\d+\) Metadata version \d+ orders → ok", shown)
        assert re.search(r"my-app \(127.0.0.1:\d+\) Produce version \d+ orders-0 acks=-1 → INVALID_RECORD", shown)

        assert re.search(
            r"hang of Produce has met 1 request\n  holds Produce version \d+ orders-0 acks=-1 from my-app \(127.0.0.1:\d+\), "
            r"since [\d:.]{12}, ",
            hanging,
        )
        assert "fail of Fetch with KAFKA_STORAGE_ERROR has met no request" in hanging
        assert re.search(r"Produce version \d+ orders-0 acks=-1 → no answer", hanging)
        assert "ottla-testing-helper" not in hanging
        assert "TimeoutError" in hanging
        assert "Delivery.result" not in hanging  # the client's own frames are not shown
        assert "batch.py" not in hanging


READS_AND_FAILS = """
import pytest
from confluent_kafka import Producer


@pytest.fixture
def bootstrap_servers(BROKER):
    return BROKER.bootstrap_servers


@pytest.fixture
def broken(BROKER):
    BROKER.create_topic("orders")
    BROKER.create_topic("orders")


def test_that_reads(bootstrap_servers):
    settings = {"bootstrap.servers": bootstrap_servers, "message.timeout.ms": 500, "allow.auto.create.topics": False}
    producer = Producer(settings)
    producer.produce("nowhere", b"value")
    assert producer.flush(10) != 0


def test_that_is_not_set_up(broken, BROKER):
    pass
"""


@pytest.mark.parametrize(
    ("fixture", "options"),
    [("kafka_broker", ["--kafka-broker-process"]), ("kafka_session_broker", [])],
    ids=["process", "session"],
)
def test_a_failed_test_shows_refused_reads_once(tmp_path: Path, fixture: str, options: list[str]) -> None:
    ini = "kafka_broker_config =\n    auto.create.topics.enable=false\n"
    done = run_pytest(tmp_path, READS_AND_FAILS.replace("BROKER", fixture), "--tb=line", *options, ini=ini)
    assert "1 failed, 1 error" in done.stdout
    assert "failed: UNKNOWN_TOPIC_OR_PARTITION for nowhere" in done.stdout
    assert "failed: TOPIC_ALREADY_EXISTS for orders: topic orders exists already" in done.stdout
    assert done.stdout.count("Kafka broker, last lines of its log") == 2


def test_settings_for_all_brokers(tmp_path: Path) -> None:
    code = "def test_it(kafka_broker):\n    kafka_broker.produce('a', 'b')\n    assert kafka_broker.topics() == {'a': 7}\n"
    done = run_pytest(tmp_path, code, ini="kafka_broker_config =\n    num.partitions=7\n")
    assert done.returncode == 0, done.stdout
    done = run_pytest(tmp_path, code, ini="kafka_broker_config =\n    num.partitions\n")
    assert done.returncode != 0
    assert "write NAME=VALUE" in done.stdout + done.stderr
    done = run_pytest(tmp_path, code, ini="kafka_broker_config =\n    num.partition=7\n")
    assert done.returncode != 0
    assert "num.partition is no broker setting of Kafka; did you mean num.partitions?" in done.stdout


MISSPELT = {
    "kafka_broker(config={'num.partition': 3})": "num.partition is no broker setting of Kafka; did you mean num.partitions?",
    "kafka_broker({'num.partitions': 3})": "kafka_broker takes named arguments only: config=…, process=…, port=…, data=…",
    "kafka_broker(proces=True)": "kafka_broker has no argument proces=…; there are config=…, process=…, port=…, data=…",
    "kafka_topic(3)": "kafka_topic takes named arguments only: partitions=…, config=…",
    "kafka_topic(config={'retension.ms': 3})": "unknown topic setting retension.ms; did you mean retention.ms?",
}


def test_a_misspelt_marker_is_an_error(tmp_path: Path) -> None:
    code = ["import pytest"]
    for number, marker in enumerate(MISSPELT):
        code.append(f"@pytest.mark.{marker}\ndef test_{number}_it(kafka_broker, kafka_topic):\n    pass")
    done = run_pytest(tmp_path, "\n\n\n".join(code) + "\n")
    assert f"{len(MISSPELT)} errors" in done.stdout
    shown = done.stdout.split("ERROR at setup of ")[1:]
    for error, text in zip(MISSPELT.values(), shown, strict=True):
        assert error in text


def test_nothing_is_imported_until_it_is_used(tmp_path: Path) -> None:
    code = (
        "import sys\n\n\ndef test_it():\n"
        "    loaded = {name for name in sys.modules if name.startswith('ottla')}\n"
        "    assert loaded == {'ottla', 'ottla.testing', 'ottla.testing.pytest_plugin'}\n"
        "    assert 'asyncio' not in sys.modules or 'pytest_asyncio' in sys.modules\n"
    )
    plugins = ["-p", "no:xdist", "-p", "no:hypothesispytest", "-p", "no:timeout"]
    done = run_pytest(tmp_path, code, *plugins, finds_plugins=True)
    assert done.returncode == 0, done.stdout


def test_clusters(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, CLUSTERS)
    assert done.returncode == 1
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "last lines of its log (<Cluster of 1 nodes, running: none>)" in done.stdout
    assert "node 1: it was killed" in done.stdout
    assert "is up at" not in done.stdout  # nothing of the start
