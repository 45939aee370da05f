"""The dashboards of deploy/grafana: every query finds a series on a node that was loaded."""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.peers.topics import make_topic
from tests.support.servers.kafka_server import HANG_S, KafkaServer, free_ports
from tests.support.servers.ottla_server import start_ottla

from ottla import Consumer, Producer
from ottla.client.alerts import DEFAULT_RULES, promql

FOLDER = Path(__file__).parents[3] / "deploy" / "grafana"
PAGES = {"/metrics": {}, "/metrics/groups": {"flavour": "lag"}}
SELECTOR = re.compile(r"\b([a-z][a-z0-9_]*_[a-z0-9_]+)\b(?:\{([^}]*)\})?(?!\()")
MATCHER = re.compile(r'(\w+)(=~|!~|!=|=)"([^"]*)"')
FUNCTIONS = {"clamp_min"}


class Query(NamedTuple):
    place: str
    expression: str


def queries() -> list[Query]:
    found = []
    for file in sorted(FOLDER.glob("*.json")):
        board = json.loads(file.read_text("utf-8"))
        assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
        for panel in board["panels"]:
            found += [Query(f"{board['title']}: {panel['title']}", target["expr"]) for target in panel["targets"]]
    for rule in DEFAULT_RULES:
        expression = promql(rule)
        if expression is not None:
            found.append(Query(f"rule {rule.name}", expression.rpartition(f" {rule.operator} ")[0]))
    return [each._replace(expression=re.sub(r"\$(instance|topic|group)", ".*", each.expression)) for each in found]


@pytest.fixture(scope="module")
def loaded() -> Iterator[tuple[KafkaServer, int]]:
    """A node with two topics, records, reads, and a group that is behind; and the port of its metrics."""
    [port] = free_ports(1)
    with start_ottla({"ottla.metrics.port": port}) as server:
        for name in ("orders", "prices"):
            make_topic(server.bootstrap, name, 2)
        with Producer(server.bootstrap) as producer:
            producer.send_many("orders", [b"x" * 100] * 1000).wait(HANG_S)
            settings = {"group_id": "billing", "auto_offset_reset": "earliest", "enable_auto_commit": False}
            with Consumer(server.bootstrap, **settings) as consumer:
                consumer.subscribe("orders")
                assert consumer.poll(HANG_S, max_records=10)
                consumer.commit()
                with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as response:
                    response.read()  # shares and rates are since the scrape before
                yield server, port


def series(port: int) -> dict[str, list[dict[str, str]]]:
    """The labels of all series by name, with those that Prometheus adds."""
    found: dict[str, list[dict[str, str]]] = {}
    for path, query in PAGES.items():
        with urlopen(f"http://127.0.0.1:{port}{path}?{urlencode(query)}", timeout=30) as response:
            for family in text_string_to_metric_families(response.read().decode()):
                for sample in family.samples:
                    found.setdefault(sample.name, []).append({**sample.labels, "instance": "node", "job": "ottla"})
    return found


def fits(labels: dict[str, str], matchers: str) -> bool:
    for name, operator, value in MATCHER.findall(matchers):
        has = labels.get(name, "")
        equal = has == value if operator in ("=", "!=") else re.fullmatch(value, has) is not None
        if equal is operator.startswith("!"):
            return False
    return True


def test_every_query_finds_a_series(loaded: tuple[KafkaServer, int]) -> None:
    known = series(loaded[1])
    missing = []
    for place, expression in queries():
        selectors = [each for each in SELECTOR.findall(expression) if each[0] not in FUNCTIONS]
        assert selectors, place
        missing += [
            f"{place}: {name}{{{matchers}}}"
            for name, matchers in selectors
            if not any(fits(labels, matchers) for labels in known.get(name, ()))
        ]
    assert missing == []


def test_query_of_a_series_that_is_not_there_would_be_found(loaded: tuple[KafkaServer, int]) -> None:
    known = series(loaded[1])
    assert "kafka_server_no_such_thing" not in known
    assert not any(fits(each, 'topic="absent"') for each in known["kafka_log_log_size"])
    assert any(fits(each, 'topic=~"ord.*",topic!=""') for each in known["kafka_log_log_size"])


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Debian's prometheus is not installed")
def test_prometheus_answers_every_query(loaded: tuple[KafkaServer, int], tmp_path: Path) -> None:
    _, port = loaded
    [own] = free_ports(1)
    target = f"static_configs: [{{targets: ['127.0.0.1:{port}']}}]"
    (tmp_path / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s}\nscrape_configs:\n"
        f"  - {{job_name: ottla, {target}}}\n"
        f"  - {{job_name: groups, metrics_path: /metrics/groups, params: {{flavour: [lag]}}, {target}}}\n"
    )
    command = ["prometheus", f"--config.file={tmp_path / 'prometheus.yml'}", f"--storage.tsdb.path={tmp_path / 'data'}"]
    process = subprocess.Popen(
        [*command, f"--web.listen-address=127.0.0.1:{own}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    def ask(expression: str) -> list[object]:
        with urlopen(f"http://127.0.0.1:{own}/api/v1/query?{urlencode({'query': expression})}", timeout=30) as response:
            found: list[object] = json.load(response)["data"]["result"]
            return found

    def missing() -> list[str]:
        # `deriv` over ten minutes in steps of one needs two minutes of samples.
        return [f"{place}: {each}" for place, each in queries() if not ask(each.replace("[10m:1m]", "[10m:1s]"))]

    try:
        deadline = time.monotonic() + HANG_S
        while True:
            try:
                left = missing()
            except OSError:
                left = ["Prometheus does not answer yet"]
            if not left:
                break
            assert time.monotonic() < deadline, left
            time.sleep(0.5)
    finally:
        process.kill()
        process.wait()
