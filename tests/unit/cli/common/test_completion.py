"""Shell completion: topic names if the cluster answers quickly, else none."""

import time

import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import RunOttla

from ottla.cli.common import completion
from ottla.wire.messages.metadata import MetadataRequest


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A longer limit: a busy test machine may not answer within the 0.3 s that users wait."""
    monkeypatch.setattr(completion, "LIMIT_MS", 60_000)


def complete(ottla: RunOttla, monkeypatch: pytest.MonkeyPatch, line: str, words: int) -> list[str]:
    monkeypatch.setenv("_OTTLA_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(words))
    return [each.split(",")[1] for each in ottla().lines if "," in each]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ottla consume or", 2),
        ("ottla topics describe o", 3),
        ("ottla topics --describe --topic ", 4),
        ("ottla produce --topic o", 3),
        ("ottla get-offsets ", 2),
        ("ottla configs describe topic o", 4),
        ("ottla configs --describe --entity-type topics --entity-name ", 6),
        ("ottla configs --describe --topic o", 4),
    ],
)
def test_topic_names_are_offered(ottla: RunOttla, monkeypatch: pytest.MonkeyPatch, line: str, words: int) -> None:
    assert complete(ottla, monkeypatch, line, words) == ["orders"]


def test_no_names_are_offered_without_a_cluster(ottla: RunOttla, node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    assert complete(ottla, monkeypatch, "ottla consume --bootstrap-server absent:1 or", 4) == []
    node.handlers[MetadataRequest] = lambda request, version: None
    monkeypatch.setattr(completion, "LIMIT_MS", 300)
    began = time.monotonic()
    assert complete(ottla, monkeypatch, "ottla consume or", 2) == []
    assert time.monotonic() - began < 20, "it gave up waiting for the answer"


def test_verbs_and_actions_are_offered(ottla: RunOttla, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "produce" in complete(ottla, monkeypatch, "ottla pro", 1)
    assert complete(ottla, monkeypatch, "ottla topics de", 2) == ["describe", "delete"]


@pytest.mark.parametrize(
    ("line", "words", "said"),
    [
        ("ottla configs describe broker", 3, ["broker", "broker-logger", "broker-defaults"]),
        ("ottla configs describe broker o", 4, []),
        ("ottla configs --describe --entity-type t", 4, ["topics"]),
        ("ottla configs alter topic orders --set retention.m", 6, ["retention.ms="]),
        ("ottla configs alter topic orders --unset retention.m", 6, ["retention.ms"]),
        ("ottla configs alter broker 1 --set log.retention.mi", 6, ["log.retention.minutes="]),
        ("ottla configs --alter --broker 1 --set log.retention.mi", 6, ["log.retention.minutes="]),
        ("ottla consume orders --formatter ", 4, ["default", "no-op", "logging", "json"]),
    ],
)
def test_values_of_flags_are_offered(
    ottla: RunOttla, monkeypatch: pytest.MonkeyPatch, line: str, words: int, said: list[str]
) -> None:
    assert complete(ottla, monkeypatch, line, words) == said
