"""Kafka's own command line tools print the same with Ottla as with Apache Kafka, call by call.

The scenarios of `tool_scenarios.py` run against the server under test and against a fresh Apache Kafka. What must
differ (ids, ports, folders, times, the words of an error) is taken out first; the rest is compared line by line.
"""

import re
from pathlib import Path

import pytest
from tests.compat.broker.tools.tool_output import Said, run_scenario
from tests.compat.broker.tools.tool_scenarios import SCENARIOS
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.kafka_tools import KafkaTools
from tests.support.servers.ottla_cli import run_cli
from tests.support.servers.ottla_server import StartServer

from ottla.broker.requests.apis import ON_BROKER
from ottla.wire.apis import APIS


def say_all(tools: KafkaTools, start: StartServer, folder: Path) -> dict[str, list[Said]]:
    """All scenarios against a fresh server with two log directories."""
    one, two, files = (folder / name for name in ("one", "two", "files"))
    for path in (one, two, files):
        path.mkdir(parents=True)
    with start({"log.dirs": f"{one},{two}"}, data_dir=one) as server:
        return {subject: run_scenario(tools, server, calls, files) for subject, calls in SCENARIOS.items()}


@pytest.mark.slow
def test_tools_say_the_same(
    kafka_tools: KafkaTools, start_server: StartServer, apache_kafka: ApacheKafka, tmp_path: Path
) -> None:
    theirs = say_all(kafka_tools, apache_kafka.start_server, tmp_path / "reference")
    ours = say_all(kafka_tools, start_server, tmp_path / "tested")
    different = []
    for subject, said in theirs.items():
        assert sum(call.rc == 0 for call in said) > len(said) / 2, f"{subject}: most calls failed, which proves little"
        different += [(here, there) for here, there in zip(ours[subject], said, strict=True) if here != there]
    assert not different, "\n".join(f"{here}\n    but Apache: {there}" for here, there in different)


def test_api_versions(cluster: KafkaServer, kafka_tools: KafkaTools) -> None:
    said = kafka_tools.run("broker_api_versions", "--bootstrap-server", cluster.bootstrap).stdout
    ours = run_cli("brokers", "api-versions", "--bootstrap-server", cluster.bootstrap).lines
    assert ours == said.splitlines(), "ottla's command prints the same"
    assert said.startswith(f"{cluster.bootstrap} (id: 1 rack: null isFenced: false) -> (")
    found = {int(key): what for key, what in re.findall(r"^\s+\w+\((\d+)\): (.*?),?$", said, flags=re.MULTILINE)}
    for key in ON_BROKER:
        oldest, newest = APIS[key].advertised()
        expected = f"{oldest} to {newest}" if newest > oldest else f"{newest}"
        assert found[key] == f"{expected} [usable: {newest}]"
    if cluster.name == "Ottla":
        others = {key: what for key, what in found.items() if key not in ON_BROKER}
        assert set(others.values()) == {"UNSUPPORTED"}, "only APIs with a handler are advertised"
