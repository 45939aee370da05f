"""Kafka's spelling and ours of the same command, and errors in both."""

import click
import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import RunOttla

from ottla.cli.topics.command import topics


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["create", "x"], ["create", "x"]),
        (["--create", "--topic", "x"], ["create", "--topic", "x"]),
        (["--topic", "x", "--create"], ["create", "--topic", "x"]),
        (["--bootstrap-server", "a:1", "--list"], ["list", "--bootstrap-server", "a:1"]),
        (["--bootstrap-server", "a:1", "list", "--json"], ["list", "--json", "--bootstrap-server", "a:1"]),
        (["--bootstrap-server=a:1", "list"], ["list", "--bootstrap-server=a:1"]),
        (["-b", "a:1", "describe", "x"], ["describe", "x", "-b", "a:1"]),
        (["create", "--describe"], ["create", "--describe"]),
        (["--help"], ["--help"]),
        ([], []),
        (["frobnicate"], ["frobnicate"]),
    ],
)
def test_action_is_moved_to_the_front(given: list[str], meant: list[str]) -> None:
    assert isinstance(topics, click.Group)
    assert topics.in_our_spelling(given) == meant  # type: ignore[attr-defined]


@pytest.mark.parametrize("verb", ["topics", "consume", "get-offsets"])
def test_every_verb_shows_the_version(ottla: RunOttla, verb: str) -> None:
    assert ottla(verb, "--version").out == ottla("--version").out != ""


def test_both_spellings_do_the_same(ottla: RunOttla, node: FakeNode) -> None:
    assert ottla("topics", "list").lines == ottla("topics", "--list").lines == ["orders"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("topics", "--create", "--delete", "--topic", "x"), "--create and --delete cannot be used together"),
        (("topics", "frobnicate"), "frobnicate is not one of the actions"),
        (("topics", "--bootstrap-server", "host:1"), "say what to do, one of create, list, describe, alter, delete"),
        (("topics", "--topic", "x", "--partitions", "2"), "say what to do, one of create, list"),
        (("topics", "--zookeeper", "host:2181", "--list"), "--zookeeper is gone; Kafka 4 has no ZooKeeper"),
        (("topics", "--zookeeper"), "--zookeeper is gone"),
        (("topics", "--list", "--broker-list", "host:1"), "--broker-list is gone; it has been renamed: use --bootstrap-server"),
        (("produce", "x", "--broker-list", "host:1"), "--broker-list is gone"),
        (("produce", "x", "--zookeeper=host:1"), "--zookeeper is gone"),
        (("consume", "x", "--group", "g", "--partition", "0"), "the group chooses the partitions"),
        (("get-offsets", "--broker-list", "host:1"), "--broker-list is gone"),
        (("configs", "--zookeeper", "x", "--describe", "--topic", "x"), "--zookeeper is gone"),
        (("topics", "alter", "x", "--partitions", "2", "--config", "a=b"), "ottla configs alter"),
        (("topics", "create"), "name the topic to create"),
        (("topics", "create", "x", "--topic", "y"), "name the topic to create"),
        (("topics", "delete"), "name the topic to delete"),
        (("topics", "alter", "x"), "--partitions"),
        (("topics", "create", "x", "--partitions", "0"), "--partitions"),
        (("topics", "create", "x", "--replica-assignment", "1:1"), "names a broker twice"),
        (("topics", "create", "x", "--replica-assignment", "1:2,1"), "all must have as many"),
        (("topics", "create", "x", "--replica-assignment", "one"), "takes broker ids"),
        (
            ("topics", "create", "x", "--replica-assignment", "1", "--partitions", "2"),
            "leave --partitions and --replication-factor out",
        ),
        (("topics", "describe", "--topic", "("), "regular expression"),
        (("topics", "list", "--bootstrap-server", "host:port"), "is not HOST:PORT"),
    ],
)
def test_wrong_usage_is_one_sentence_and_code_2(ottla: RunOttla, arguments: tuple[str, ...], said: str) -> None:
    refused = ottla(*arguments)
    assert refused.rc == 2
    assert said in " ".join(refused.err.split())
    assert "Traceback" not in refused.err


VERBS = [
    "topics",
    *(f"topics {action}" for action in ("create", "list", "describe", "alter", "delete")),
    "configs",
    "configs describe",
    "configs alter",
    "produce",
    "consume",
    "get-offsets",
    "log-dirs",
    "delete-records",
]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_examples(ottla: RunOttla, verb: str) -> None:
    said = ottla(*verb.split(), "--help")
    assert said.rc == 0
    assert "Examples:" in said.out
    assert f"ottla {verb.split()[0]}" in said.out
