"""`ottla topics` compared with kafka-topics, on one cluster: each sees the other's changes, and both print the same."""

import json
import re

import pytest
from tests.compat.cli.conftest import RunOttla, RunTool
from tests.support.peers.topics import await_true


def normal(text: str) -> list[str]:
    """Lines of a description, with sorted settings and topics."""
    lines = []
    for line in text.splitlines():
        head, configs, values = line.partition("\tConfigs: ")
        pairs = sorted(re.split(r",(?=[a-z.]+=)", values)) if configs else []
        lines.append(head + configs + ",".join(pairs))
    return sorted(lines)


def test_topics_we_create_are_described_alike(ottla: RunOttla, kafka: RunTool, topic: str) -> None:
    configs = ("--config", "retention.ms=86400000", "--config", "cleanup.policy=compact,delete")
    made = ottla("topics", "create", topic, "--partitions", 3, *configs)
    assert (made.rc, made.out) == (0, f"Created topic {topic}.\n")
    ours, theirs = ottla("topics", "describe", topic), kafka("topics", "--describe", "--topic", topic)
    assert ours.rc == theirs.rc == 0
    assert normal(ours.out) == normal(theirs.out)
    assert len(ours.lines) == 4
    (shown,) = json.loads(ottla("topics", "describe", topic, "--json").out)
    assert shown["configs"]["retention.ms"] == "86400000"
    assert [each["leader"] for each in shown["partitions"]] == [1, 1, 1]


def test_kafkas_flags_do_the_same(ottla: RunOttla, kafka: RunTool, topic: str, bootstrap: str) -> None:
    where = ("--bootstrap-server", bootstrap)
    assert ottla("topics", *where, "--create", "--topic", topic, "--partitions", 2, "--replication-factor", 1).rc == 0
    for flags in (
        ("--describe", "--topic", topic),
        ("--describe", "--topic", f"{topic[:-1]}."),
        ("--describe", "--topic", topic, "--at-min-isr-partitions"),
        ("--describe", "--topic", topic, "--unavailable-partitions"),
        ("--describe", "--topic", topic, "--under-min-isr-partitions"),
        ("--describe", "--topic", topic, "--under-replicated-partitions"),
        ("--describe", "--topic", "nothing-like-it", "--if-exists"),
        ("--list", "--exclude-internal"),
    ):
        ours, theirs = ottla("topics", *flags, *where), kafka("topics", *flags)
        assert (ours.rc, normal(ours.out)) == (theirs.rc, normal(theirs.out)), flags
    assert ottla("topics", "--alter", "--topic", topic, "--partitions", 4, *where).rc == 0
    assert len(kafka("topics", "--describe", "--topic", topic).lines) == 5
    assert ottla("topics", "--delete", "--topic", topic, *where).rc == 0
    assert topic not in kafka("topics", "--list").lines


def test_topics_of_others_are_seen(ottla: RunOttla, kafka: RunTool, topic: str) -> None:
    kafka("topics", "--create", "--topic", topic, "--replica-assignment", "1,1,1")
    await_true(lambda: topic in ottla("topics", "list").lines, f"{topic} is listed")
    assert topic in [each["name"] for each in json.loads(ottla("topics", "list", "--json").out)]
    paged = ottla("topics", "describe", topic, "--partition-size-limit-per-response", 1)
    assert normal(paged.out) == normal(kafka("topics", "--describe", "--topic", topic).out)
    topic_id = re.search(r"TopicId: (\S+)", paged.out)
    assert topic_id
    assert ottla("topics", "describe", "--topic-id", topic_id[1]).out == paged.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create", "there"), "TOPIC_ALREADY_EXISTS"),
        (("create", "a/b"), "a/b"),
        (("create", "fresh", "--config", "nope=1"), "nope"),
        (("create", "fresh", "--config", "retention.ms=soon"), "retention.ms"),
        (("create", "fresh", "--replication-factor", "3"), "INVALID_REPLICATION_FACTOR"),
        (("describe", "absent"), "topic absent does not exist"),
        (("alter", "absent", "--partitions", "3"), "topic absent does not exist"),
        (("alter", "there", "--partitions", "1"), "INVALID_PARTITIONS"),
        (("delete", "absent"), "topic absent does not exist"),
        (("describe", "--topic", "nothing.*"), "no topic matches"),
        (("describe", "--topic-id", "AAAAAAAAAAAAAAAAAAAAAQ"), "no topic has the id"),
    ],
)
def test_refusals_are_one_sentence(ottla: RunOttla, arguments: tuple[str, ...], said: str) -> None:
    ottla("topics", "create", "there", "--if-not-exists", "--partitions", 2)
    refused = ottla("topics", *arguments)
    assert refused.rc == 1
    assert said in refused.err
    assert refused.err.startswith("ottla: ")
    assert "Traceback" not in refused.err


def test_dry_runs_and_repeated_changes_do_nothing(ottla: RunOttla, topic: str) -> None:
    asked = ottla("topics", "create", topic, "--validate-only")
    assert (asked.rc, asked.out) == (0, f"Topic {topic} could be created.\n")
    assert topic not in ottla("topics", "list").lines
    made = json.loads(ottla("topics", "create", topic, "--json").out)
    assert (made["topic"], made["partitions"], made["replicationFactor"]) == (topic, 2, 1)
    assert ottla("topics", "create", topic, "--if-not-exists").rc == 0
    altered = ottla("topics", "alter", topic, "--partitions", 3)
    assert altered.rc == 0
    assert "changes which partition a key goes to" in altered.err
    assert ottla("topics", "delete", topic).rc == 0
    assert ottla("topics", "delete", topic, "--if-exists").rc == 0
