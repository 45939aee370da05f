"""The console beside three nodes: partitions move, a node is killed while one looks, the cluster goes away."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.console_server import RunningConsole, check_page, eventually, running_console
from tests.support.servers.three_nodes import ThreeNodes
from tests.support.servers.three_ottla_nodes import ThreeOttlaNodes

from ottla import Admin, NewTopic, Producer
from ottla.testing import Broker

PAGES = (
    "/",
    "/topics",
    "/groups",
    "/nodes",
    "/nodes/1",
    "/quorum",
    "/log-dirs",
    "/reassignments",
    "/transactions",
    "/acls",
    "/users",
)
PAGE_S = 2.0
SLACK_S = 1.5
"""What a busy machine may add."""


@pytest.fixture(scope="module")
def nodes(server_kind: str, request: pytest.FixtureRequest) -> Iterator[ThreeNodes]:
    kafka: ApacheKafka | None = request.getfixturevalue("apache_kafka") if server_kind == "apache" else None
    with ThreeOttlaNodes() if kafka is None else ThreeNodes(kafka) as running:
        yield running


@pytest.fixture
def console(nodes: ThreeNodes) -> Iterator[RunningConsole]:
    nodes.heal()
    with running_console(nodes.bootstrap) as running:
        eventually(lambda: running.get("/api/").json(), lambda found: found.get("is_healthy", False))
        yield running


def timed(console: RunningConsole, path: str) -> tuple[int, float]:
    """The status of a well-formed page, and how long it took."""
    began_s = time.monotonic()
    answer = console.get(path)
    took_s = time.monotonic() - began_s
    check_page(answer.text)
    return answer.status, took_s


@pytest.mark.slow
def test_plan_is_shown_started_watched_and_its_throttles_removed(console: RunningConsole, nodes: ThreeNodes) -> None:
    topic = "moves"
    with Admin(nodes.bootstrap) as admin, Producer(nodes.bootstrap) as producer:
        admin.create_topics([NewTopic(topic, replicas={0: [1, 2], 1: [1, 2], 2: [2, 1]})]).raise_first()
        for number in range(3_000):
            producer.send(topic, bytes(1_000), partition=number % 3)
        producer.flush()
        path = f"/reassignments/plan?brokers=3,2&topic={topic}"
        plan = eventually(lambda: console.api(path)["plan"], lambda found: found is not None)
        assert (plan["changed"], plan["moved"]) == (3, 3)
        assert all(1 not in each["after"] for each in plan["rows"])
        console.page(path)
        done = console.done("/reassignments/start", {"plan": plan["json"], "throttle": "100000000"})
        assert done == "3 partitions begin to move."
        console.page("/reassignments")
        eventually(lambda: console.api("/reassignments")["count"], lambda count: count == 0)
        found = eventually(lambda: console.api("/reassignments"), lambda found: bool(found["throttles"]))
        assert "leader.replication.throttled.rate" in str(found["throttles"])
        console.page("/reassignments")
        console.done("/reassignments/remove-throttles", {})
        eventually(lambda: console.api("/reassignments")["throttles"], lambda found: not found)
        partitions = admin.describe_topics([topic])[topic].partitions
        assert all(set(each.replicas) == {2, 3} for each in partitions)


@pytest.mark.slow
def test_slow_move_is_cancelled(console: RunningConsole, nodes: ThreeNodes) -> None:
    topic = "cancelled"
    with Admin(nodes.bootstrap) as admin, Producer(nodes.bootstrap) as producer:
        admin.create_topics([NewTopic(topic, replicas={0: [1, 2]})]).raise_first()
        for _ in range(80):
            producer.send(topic, bytes(100_000))
        producer.flush()
        plan = '{"version":1,"partitions":[{"topic":"cancelled","partition":0,"replicas":[1,3]}]}'
        console.done("/reassignments/start", {"plan": plan, "throttle": "1024"})
        (row,) = eventually(lambda: console.api("/reassignments")["rows"], bool)
        assert (row["adding"], row["removing"]) == ([3], [2])
        console.page("/reassignments")
        assert console.post("/reassignments/remove-throttles", {}).status == 409
        assert "went back" in console.done("/reassignments/cancel", {"topic": topic, "partition": "0"})
        assert console.done("/reassignments/cancel", {"all": "1"}) == "Nothing was moving any more."
        eventually(lambda: admin.describe_topics([topic])[topic].partitions[0].replicas, lambda found: set(found) == {1, 2})
        console.done("/reassignments/remove-throttles", {})
        eventually(lambda: console.api("/reassignments")["throttles"], lambda found: not found)


@pytest.mark.slow
def test_killed_node_is_named_with_what_to_do(console: RunningConsole, nodes: ThreeNodes) -> None:
    with Admin(nodes.bootstrap) as admin:
        wanted = [NewTopic("alone", replicas={0: [2]}), NewTopic("safe", replicas={0: [1, 2, 3]})]
        admin.create_topics(wanted).raise_first()
    for path in PAGES:
        assert timed(console, path)[0] == 200
    nodes.kill(2)
    while_it_is_down: list[tuple[str, int, float]] = []

    def kinds() -> set[str]:
        path = PAGES[len(while_it_is_down) % len(PAGES)]
        while_it_is_down.append((path, *timed(console, path)))
        found = console.get("/api/")
        return {each["kind"] for each in found.json()["problems"]} if found.status == 200 else set()

    eventually(kinds, lambda found: {"fenced-broker", "offline"} <= found)
    for path, status, took_s in while_it_is_down:
        assert status in (200, 503), (path, status)
        assert took_s < 2 * PAGE_S + SLACK_S, (path, took_s)
    problems = console.api("/")["problems"]
    (offline,) = [each for each in problems if each["kind"] == "offline" and "alone-0" in each["partitions"]]
    assert offline["remedy"].startswith("start broker 2")
    console.page("/")
    (node,) = [each for each in console.api("/nodes")["rows"] if each["id"] == 2]
    assert node["state"] == "fenced"
    nodes.start(2)
    eventually(lambda: console.get("/api/").json(), lambda found: found.get("is_healthy", False))


GONE = (*PAGES, "/transactions/x", "/groups/x/reset?to=earliest", "/hanging-transactions?topic=x", "/quotas", "/tokens")


def test_cluster_that_is_gone_gives_pages_within_two_seconds() -> None:
    def ask(path: str) -> tuple[str, int, float]:
        return path, *timed(RunningConsole(console.url), path)

    with Broker(process=True) as broker, running_console(broker.bootstrap_servers) as console:
        for path in PAGES:
            assert timed(console, path)[0] == 200
        broker.kill()
        with ThreadPoolExecutor(len(GONE)) as threads:
            for path, status, took_s in threads.map(ask, GONE):
                assert status in (200, 502, 503), path  # what is kept is shown for some minutes
                assert took_s < PAGE_S + SLACK_S, (path, took_s)
    with running_console("127.0.0.1:9") as console, ThreadPoolExecutor(4) as threads:
        for path, status, took_s in threads.map(ask, ("/", "/topics", "/acls", "/nodes/1")):
            assert status == 503, path
            assert took_s < PAGE_S + SLACK_S, (path, took_s)
        assert "does not answer" in console.get("/").text
