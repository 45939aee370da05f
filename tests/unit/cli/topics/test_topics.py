"""`ottla topics` against a cluster in memory: older brokers, terminals, partitions without leaders."""

import asyncio
import json
import os
import pty
import subprocess
import sys

import pytest
from tests.support.nodes.fake_node import FakeNetwork, FakeNode, all_versions
from tests.unit.cli.conftest import ORDERS_ID, WHERE, RunOttla, describe, make_node, metadata_of

from ottla.cli.common.connection import open_cluster
from ottla.cli.common.settings import build_settings
from ottla.cli.topics.command import see
from ottla.errors.codes import ErrorCode
from ottla.ids import uuid_text
from ottla.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from ottla.wire.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from ottla.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from ottla.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic


def configs(request: DescribeConfigsRequest, version: int) -> DescribeConfigsResponse:
    shown = [
        DescribeConfigsResourceResult(name="retention.ms", value="7", config_source=1),
        DescribeConfigsResourceResult(name="min.insync.replicas", value="2", config_source=5),
    ]
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(resource_type=each.resource_type, resource_name=each.resource_name, configs=shown)
            for each in request.resources
        ]
    )


def page(request: DescribeTopicPartitionsRequest, version: int) -> DescribeTopicPartitionsResponse:
    """One partition per page; the second has no leader, but eligible leader replicas."""
    index = 0 if request.cursor is None else request.cursor.partition_index
    partition = DescribeTopicPartitionsResponsePartition(
        partition_index=index,
        leader_id=1 if index == 0 else -1,
        replica_nodes=[1, 2],
        isr_nodes=[1, 2] if index == 0 else [],
        eligible_leader_replicas=[] if index == 0 else [2],
        last_known_elr=[] if index == 0 else [1],
    )
    topic = DescribeTopicPartitionsResponseTopic(name="orders", topic_id=ORDERS_ID, partitions=[partition])
    cursor = None if index else DescribeTopicPartitionsResponseCursor(topic_name="orders", partition_index=1)
    return DescribeTopicPartitionsResponse(topics=[topic], next_cursor=cursor)


@pytest.fixture
def described(node: FakeNode) -> FakeNode:
    node.handlers |= {DescribeTopicPartitionsRequest: page, DescribeConfigsRequest: configs}
    return node


HEAD = f"Topic: orders\tTopicId: {uuid_text(ORDERS_ID)}\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: retention.ms=7"
FIRST = "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\tElr: \tLastKnownElr: "
SECOND = "\tTopic: orders\tPartition: 1\tLeader: none\tReplicas: 1,2\tIsr: \tElr: 2\tLastKnownElr: 1"


def test_pages_of_a_topic_are_joined(ottla: RunOttla, described: FakeNode) -> None:
    assert ottla("topics", "describe", "orders").lines == [HEAD, FIRST, SECOND]
    assert len(described.asked_for(DescribeTopicPartitionsRequest)) == 2
    (shown,) = json.loads(ottla("topics", "describe", "--json").out)
    assert shown["partitions"][1] == {
        "partition": 1,
        "leader": None,
        "leaderEpoch": -1,
        "replicas": [1, 2],
        "isr": [],
        "elr": [2],
        "lastKnownElr": [1],
        "adding": [],
        "removing": [],
        "state": "offline",
        "why": "only broker 2 holds every acknowledged record, and it is down; broker 1 led last and is up, but was killed: it "
        "waits for broker 2",
        "remedy": "start broker 2: then it or broker 1 leads, and nothing is lost. If that is impossible: `ottla elect-leaders "
        "orders:1 --unclean` lets broker 1 lead, and loses what was acknowledged while it was out of sync",
    }


@pytest.mark.parametrize(
    ("flag", "lines"),
    [
        ("--unavailable-partitions", [SECOND]),
        ("--under-replicated-partitions", [SECOND]),
        ("--under-min-isr-partitions", [SECOND]),
        ("--at-min-isr-partitions", [FIRST]),
        ("--topics-with-overrides", [HEAD]),
    ],
)
def test_filters(ottla: RunOttla, described: FakeNode, flag: str, lines: list[str]) -> None:
    assert ottla("topics", "describe", flag).lines == lines


def test_check_sets_the_exit_code_by_what_is_shown(ottla: RunOttla, described: FakeNode) -> None:
    assert ottla("topics", "describe", "orders").rc == 0
    assert ottla("topics", "describe", "orders", "--check").rc == 1
    assert ottla("topics", "describe", "--at-min-isr-partitions", "--check").rc == 0  # partition 0 has all of its replicas


def test_check_says_what_is_wrong(ottla: RunOttla, described: FakeNode) -> None:
    said = ottla("topics", "describe", "orders", "--check")
    assert said.lines == [HEAD, FIRST, SECOND]
    assert said.err.startswith("ottla: orders-1 is offline: only broker 2 holds every acknowledged record, and it is down; ")
    assert ". To do: start broker 2: then it or broker 1 leads, and nothing is lost. " in said.err
    assert ottla("topics", "describe", "orders").err == ""
    shown = ottla("topics", "describe", "orders", columns=100).out
    assert "What is wrong" in shown
    assert "ottla elect-leaders orders:1 --unclean" in " ".join(shown.split())


def test_same_trouble_is_told_once(ottla: RunOttla, node: FakeNode) -> None:
    node.handlers[DescribeConfigsRequest] = configs
    node.handlers[MetadataRequest] = metadata_of(describe("orders", partitions=3, leader=-1))
    said = ottla("topics", "describe", "--check")
    (line,) = said.err.splitlines()
    assert line.startswith("ottla: orders-0, orders-1 and orders-2 are offline: ")


def test_reassignments_are_shown_as_kafka_does(ottla: RunOttla, node: FakeNode) -> None:
    node.handlers[DescribeConfigsRequest] = configs
    topic = describe("orders", partitions=1)
    topic.partitions[0].replica_nodes = [2, 1]
    node.handlers[MetadataRequest] = metadata_of(topic)
    moving = OngoingPartitionReassignment(replicas=[2, 1], adding_replicas=[2], removing_replicas=[1])
    answer = ListPartitionReassignmentsResponse(topics=[OngoingTopicReassignment(name="orders", partitions=[moving])])
    node.handlers[ListPartitionReassignmentsRequest] = lambda request, version: answer
    head, line = ottla("topics", "describe", "orders").lines
    assert "ReplicationFactor: 1" in head
    assert "\tIsr: 1\tAdding Replicas: 2\tRemoving Replicas: 1\tElr: " in line
    assert ottla("topics", "describe", "--under-replicated-partitions").lines == []
    (shown,) = json.loads(ottla("topics", "describe", "--json").out)
    assert (shown["partitions"][0]["adding"], shown["partitions"][0]["removing"]) == ([2], [1])


def test_states_are_in_the_table(ottla: RunOttla, described: FakeNode) -> None:
    rows = [line.split() for line in ottla("topics", "describe", "orders", columns=100).lines]
    assert [row[-1] for row in rows if row and row[0] in ("0", "1")] == ["ok", "offline"]


def test_brokers_without_describe_topic_partitions(ottla: RunOttla, described: FakeNode) -> None:
    described.served = all_versions(DescribeTopicPartitions=None)
    lines = ottla("topics", "describe", "orders").lines
    assert lines[1] == "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: N/A\tLastKnownElr: N/A"


def test_internal_topics_can_be_left_out(ottla: RunOttla, node: FakeNode) -> None:
    internal = MetadataResponseTopic(name="__consumer_offsets", is_internal=True)
    node.handlers[MetadataRequest] = metadata_of(describe("orders"), internal)
    assert ottla("topics", "list").lines == ["__consumer_offsets", "orders"]
    assert ottla("topics", "list", "--exclude-internal").lines == ["orders"]


def test_a_controller_that_has_moved_is_asked_again(ottla: RunOttla, node: FakeNode) -> None:
    codes = iter([ErrorCode.NOT_CONTROLLER, 0])

    def create(request: CreateTopicsRequest, version: int) -> CreateTopicsResponse:
        node.handlers[MetadataRequest] = metadata_of(describe("orders"), describe("new"))
        return CreateTopicsResponse(topics=[CreatableTopicResult(name="new", error_code=next(codes))])

    node.handlers[CreateTopicsRequest] = create
    assert ottla("topics", "create", "new").out == "Created topic new.\n"
    first, second = node.asked_for(CreateTopicsRequest)
    assert first == second
    assert (first.topics[0].num_partitions, first.topics[0].replication_factor) == (-1, -1)


def test_names_that_collide_in_metrics_get_a_warning(ottla: RunOttla, node: FakeNode) -> None:
    node.handlers[MetadataRequest] = metadata_of(describe("a.b_c"), describe("a.b-c"))
    node.handlers[CreateTopicsRequest] = lambda request, version: CreateTopicsResponse(
        topics=[CreatableTopicResult(name=request.topics[0].name)]
    )
    assert "metric names" in ottla("topics", "create", "a.b_c").err
    assert ottla("topics", "create", "a.b-c").err == ""


def test_no_question_is_asked_without_a_terminal(ottla: RunOttla, node: FakeNode) -> None:
    def delete(request: DeleteTopicsRequest, version: int) -> DeleteTopicsResponse:
        node.handlers[MetadataRequest] = metadata_of()
        return DeleteTopicsResponse(responses=[DeletableTopicResult(name="orders")])

    node.handlers[DeleteTopicsRequest] = delete
    said = ottla("topics", "delete", "orders")
    assert (said.rc, said.out, said.err) == (0, "Deleted topic orders.\n", "")


@pytest.mark.parametrize("names", [("a", "b"), ("--topic", "a", "--topic", "b"), ("--topic", "a,b"), ("--topic", "[ab]")])
def test_pipe_names_each_deleted_topic_and_each_that_stays(ottla: RunOttla, node: FakeNode, names: tuple[str, ...]) -> None:
    codes = {"a": [ErrorCode.NOT_CONTROLLER, 0], "b": [ErrorCode.TOPIC_DELETION_DISABLED]}
    node.handlers[MetadataRequest] = metadata_of(describe("a"), describe("b"), describe("c"))

    def delete(request: DeleteTopicsRequest, version: int) -> DeleteTopicsResponse:
        node.handlers[MetadataRequest] = metadata_of(describe("b"), describe("c"))
        names = [each.name for each in request.topics]
        return DeleteTopicsResponse(
            responses=[DeletableTopicResult(name=name, error_code=codes[name].pop(0)) for name in names]
        )

    node.handlers[DeleteTopicsRequest] = delete
    said = ottla("topics", "delete", *names)
    assert (said.rc, said.out) == (1, "Deleted topic a.\n")
    assert said.err.startswith("ottla: topic b was not deleted: ")
    assert said.err.endswith("(TOPIC_DELETION_DISABLED)\n")


@pytest.mark.parametrize("names", [("new", "newer"), ("--topic", "new", "--topic", "newer")])
def test_several_topics_are_created_by_one_command(ottla: RunOttla, node: FakeNode, names: tuple[str, ...]) -> None:
    known = [describe("orders")]

    def create(request: CreateTopicsRequest, version: int) -> CreateTopicsResponse:
        (topic,) = request.topics
        known.append(describe(topic.name))
        node.handlers[MetadataRequest] = metadata_of(*known)
        return CreateTopicsResponse(topics=[CreatableTopicResult(name=topic.name, num_partitions=topic.num_partitions)])

    node.handlers[CreateTopicsRequest] = create
    said = ottla("topics", "create", *names, "--partitions", 3)
    assert (said.rc, said.out) == (0, "Created topic new.\nCreated topic newer.\n")
    assert ottla("topics", "list").lines == ["new", "newer", "orders"]
    said = ottla("topics", "create", *names, "--partitions", 3, "--json")
    assert [(each["topic"], each["partitions"]) for each in map(json.loads, said.lines)] == [("new", 3), ("newer", 3)]


def test_topics_after_one_that_is_refused_are_created(ottla: RunOttla, node: FakeNode) -> None:
    def create(request: CreateTopicsRequest, version: int) -> CreateTopicsResponse:
        (topic,) = request.topics
        code = ErrorCode.TOPIC_ALREADY_EXISTS if topic.name == "orders" else 0
        node.handlers[MetadataRequest] = metadata_of(describe("orders"), describe("new"))
        return CreateTopicsResponse(topics=[CreatableTopicResult(name=topic.name, error_code=code)])

    node.handlers[CreateTopicsRequest] = create
    said = ottla("topics", "create", "orders", "new")
    assert (said.rc, said.out) == (1, "Created topic new.\n")
    assert said.err.startswith("ottla: topic orders was not created: ")


def test_missing_broker_is_told_once_for_several_topics(ottla: RunOttla) -> None:
    said = ottla("topics", "create", "a", "b", "c", "--bootstrap-server", "elsewhere:1")
    assert (said.rc, said.out) == (1, "")
    assert said.err.count("no broker can be reached") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a/b",), "The topic name 'a/b' has characters other than"),
        (("big", "--partitions", "2147483648"), "partitions of big is 2147483648, but must be from 1 to 2147483647"),
    ],
)
def test_topic_that_no_broker_would_create_is_not_asked_for(
    ottla: RunOttla, node: FakeNode, arguments: tuple[str, ...], said: str
) -> None:
    refused = ottla("topics", "create", *arguments)
    assert (refused.rc, said in refused.err) == (1, True), refused.err
    assert node.asked_for(CreateTopicsRequest) == []


def test_alter_names_each_topic_that_was_refused(ottla: RunOttla, node: FakeNode) -> None:
    node.handlers[MetadataRequest] = metadata_of(describe("a"), describe("b"))

    def alter(request: CreatePartitionsRequest, version: int) -> CreatePartitionsResponse:
        node.handlers[MetadataRequest] = metadata_of(describe("a", 3), describe("b"))
        codes = {"a": 0, "b": ErrorCode.INVALID_PARTITIONS}
        return CreatePartitionsResponse(
            results=[CreatePartitionsTopicResult(name=each.name, error_code=codes[each.name]) for each in request.topics]
        )

    node.handlers[CreatePartitionsRequest] = alter
    said = ottla("topics", "alter", "a", "b", "--partitions", 3, "--replica-assignment", "1,2,3", "--json")
    assert (said.rc, json.loads(said.out)) == (1, [{"topic": "a", "partitions": 3}])
    assert "topic b did not get more partitions: " in said.err
    (request,) = node.asked_for(CreatePartitionsRequest)
    assert [[each.broker_ids for each in topic.assignments] for topic in request.topics] == [[[3]], [[3]]]


@pytest.mark.parametrize(
    ("words", "listed"),
    [
        (("or.*",), ["orders", "orders.eu", "orders-eu"]),
        (("or*",), ["orders", "orders.eu", "orders-eu"]),
        (("orders?eu",), ["orders.eu", "orders-eu"]),
        (("orders.eu",), ["orders.eu"]),
        (("orders.e.",), ["orders.eu", "orders-eu"]),
        (("*.eu", "prices"), ["orders.eu", "prices"]),
        (("--topic", "or.*"), ["orders", "orders.eu", "orders-eu"]),
        (("--topic", "orders", "--topic", "pri.*"), ["orders", "prices"]),
    ],
)
def test_list_takes_names_patterns_and_globs(
    ottla: RunOttla, node: FakeNode, words: tuple[str, ...], listed: list[str]
) -> None:
    node.handlers[MetadataRequest] = metadata_of(*map(describe, ("orders", "orders.eu", "orders-eu", "prices")))
    said = ottla("topics", "list", *words)
    assert (said.rc, said.lines, said.err) == (0, sorted(listed), "")


@pytest.mark.parametrize("words", [("nothing.*",), ("--topic", "nothing.*")])
def test_list_says_when_nothing_matches(ottla: RunOttla, words: tuple[str, ...]) -> None:
    said = ottla("topics", "list", *words)
    assert (said.rc, said.out, said.err) == (0, "", "ottla: no topic matches 'nothing.*'\n")


def test_name_that_looks_like_a_pattern_is_pointed_to_topic(ottla: RunOttla) -> None:
    said = ottla("topics", "delete", "or.*")
    assert said.rc == 1
    assert "for a regular expression write --topic 'or.*'" in said.err


SCRIPT = """
import sys
from tests.support.nodes.fake_node import FakeNetwork
from tests.unit.cli.conftest import WHERE, describe, make_node, metadata_of
from ottla.cli.main import main
from ottla.wire.messages.delete_topics import *
from ottla.wire.messages.metadata import MetadataRequest
import ottla.cli.common.connection as running
node = make_node(describe("orders"))
def delete(request, version):
    node.handlers[MetadataRequest] = metadata_of()
    return DeleteTopicsResponse(responses=[DeletableTopicResult(name="orders")])
node.handlers[DeleteTopicsRequest] = delete
running.make_network = lambda: FakeNetwork({WHERE: node})
main(sys.argv[1:])
"""


def on_a_terminal(answer: bytes, *arguments: str) -> tuple[int, str]:
    """Exit code and screen of a command on a terminal, where the user types `answer`."""
    leader, follower = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "OTTLA_BOOTSTRAP_SERVERS"}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *arguments],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=environment | {"PYTHONPATH": os.getcwd(), "TERM": "dumb"},
    )
    os.close(follower)
    os.write(leader, answer)
    screen = b""
    try:
        while piece := os.read(leader, 4096):
            screen += piece
    except OSError:
        pass  # EIO: the process has ended and closed the terminal
    os.close(leader)
    return process.wait(30), screen.decode()


def test_delete_asks_for_confirmation_on_a_terminal() -> None:
    code, screen = on_a_terminal(b"n\n", "topics", "delete", "orders")
    assert "Delete orders and all records in it?" in screen
    assert code != 0
    assert "Deleted" not in screen
    code, screen = on_a_terminal(b"y\n", "topics", "delete", "orders")
    assert (code, "Deleted topic orders." in screen) == (0, True)
    code, screen = on_a_terminal(b"", "topics", "delete", "orders", "--yes")
    assert (code, "?" in screen) == (0, False)


def test_topic_is_described_until_it_shows_the_change(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([1, 1, 3])
    node = make_node()

    def answer(request: MetadataRequest, version: int) -> MetadataResponse:
        return metadata_of(describe("orders", next(counts)))(request, version)

    node.handlers[MetadataRequest] = answer
    monkeypatch.setattr("ottla.cli.common.connection.make_network", lambda: FakeNetwork({WHERE: node}))

    async def run() -> None:
        cluster = open_cluster(build_settings("localhost:9092", {"retry.backoff.ms": "1"}))
        try:
            await see(cluster, "orders", lambda topic: topic is not None and len(topic.partitions) == 3)
        finally:
            cluster.close()

    asyncio.run(run())
    assert len(node.asked_for(DescribeTopicPartitionsRequest)) == 3


class Sizes:
    """A node whose partitions have offsets 5 to 15 and 100 bytes each; counts requests."""

    def __init__(self, node: FakeNode) -> None:
        self.refused_topics: set[str] = set()
        self.directories_code = 0
        self.requests: list[str] = []
        node.handlers |= {ListOffsetsRequest: self.list_offsets, DescribeLogDirsRequest: self.describe_log_dirs}

    def list_offsets(self, request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
        self.requests.append("ListOffsets")
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartitionResponse(
                            partition_index=each.partition_index,
                            offset=5 if each.timestamp == -2 else 15,
                            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED if topic.name in self.refused_topics else 0,
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def describe_log_dirs(self, request: DescribeLogDirsRequest, version: int) -> DescribeLogDirsResponse:
        self.requests.append("DescribeLogDirs")
        if self.directories_code:
            return DescribeLogDirsResponse(error_code=self.directories_code)
        topics = [
            DescribeLogDirsTopic(
                name=topic.topic,
                partitions=[DescribeLogDirsPartition(partition_index=each, partition_size=100) for each in topic.partitions],
            )
            for topic in request.topics or ()
        ]
        return DescribeLogDirsResponse(results=[DescribeLogDirsResult(log_dir="/data", topics=topics)])


@pytest.fixture
def sizes(node: FakeNode) -> Sizes:
    node.handlers[MetadataRequest] = metadata_of(describe("orders", 2), describe("prices", 1), describe("stuck", 1, leader=-1))
    return Sizes(node)


def listed(ottla: RunOttla) -> dict[str, tuple[object, object, object]]:
    said = ottla("topics", "list", "--json")
    assert (said.rc, said.err) == (0, "")
    return {each["name"]: (each["partitions"], each["records"], each["sizeBytes"]) for each in json.loads(said.out)}


def test_partitions_are_summed_with_one_round_of_requests_per_broker(ottla: RunOttla, sizes: Sizes) -> None:
    assert listed(ottla) == {"orders": (2, 20, 200), "prices": (1, 10, 100), "stuck": (1, None, None)}
    assert sorted(sizes.requests) == ["DescribeLogDirs", "ListOffsets", "ListOffsets"]


def test_what_a_broker_refuses_stays_empty(ottla: RunOttla, sizes: Sizes) -> None:
    sizes.refused_topics = {"prices"}
    sizes.directories_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert listed(ottla) == {"orders": (2, 20, None), "prices": (1, None, None), "stuck": (1, None, None)}


def test_broker_that_does_not_answer_leaves_cells_empty(
    ottla: RunOttla, node: FakeNode, sizes: Sizes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.cli.topics.command.ANSWER_S", 0.2)
    node.handlers |= {DescribeLogDirsRequest: lambda *_: None, ListOffsetsRequest: lambda *_: None}
    assert listed(ottla) == {"orders": (2, None, None), "prices": (1, None, None), "stuck": (1, None, None)}


def test_terminal_shows_a_table_and_pipes_get_names_without_asking_for_sizes(ottla: RunOttla, sizes: Sizes) -> None:
    table = ottla("topics", "list", columns=80).lines
    assert [line.split() for line in table if line][:2] == [
        ["Topic", "Partitions", "Records", "Size"],
        ["orders", "2", "20", "200", "bytes"],
    ]
    assert next(line for line in table if line.startswith("stuck")).split() == ["stuck", "1"]
    sizes.requests.clear()
    assert ottla("topics", "list").lines == ["orders", "prices", "stuck"]
    assert ottla("topics", "list", "--plain", columns=80).lines == ["orders", "prices", "stuck"]
    assert sizes.requests == []
