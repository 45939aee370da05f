"""The history of a simulated run: what of it is judged, and that a broken run is found by it alone."""

from contextlib import suppress
from typing import Any

import pytest

from ottla.ids import Uuid
from ottla.log.partition_log import PartitionLog
from ottla.sim.checkers.checker import Checkers, Place, TopicPlan, Violation
from ottla.sim.clients.client import value_text
from ottla.sim.cluster.run import RecordedRun, run_cluster_seed
from ottla.sim.cluster.watch import Watch
from ottla.sim.run import RunFailed

SEED = 0
"""A run with plain producers and consumers."""


def topic(name: str = "t", **configs: str) -> TopicPlan:
    return TopicPlan(name, Uuid(bytes(16)), 2, {key.replace("_", "."): value for key, value in configs.items()})


def lost(story: Any) -> None:
    """A record that consumers have gone past."""
    story.stored("a", 0)
    story.stored("b", 1)
    story.read((1, "b"))


def test_findings_are_a_violation(story: Any) -> None:
    run = RecordedRun()
    run.topic_made(topic())
    lost(story)
    with pytest.raises(Violation, match=r"the history of the clients: (.*\n)lost write: p was told that 'a'"):
        run.judge(story.history)


@pytest.mark.parametrize("configs", [{"cleanup_policy": "compact"}, {"retention_bytes": "100"}])
def test_records_of_some_topics_may_be_removed(story: Any, configs: dict[str, str]) -> None:
    run = RecordedRun()
    run.topic_made(topic(**configs))
    lost(story)
    assert run.judge(story.history).stored == 2


def test_deleted_records_may_be_missing(story: Any) -> None:
    run = RecordedRun()
    lasting = topic()
    run.topic_made(lasting)
    run.deletion_requested(Place(lasting, 0), 1)
    lost(story)
    run.judge(story.history)


def test_deleted_topics_are_not_judged(story: Any) -> None:
    run = RecordedRun()
    first, second = topic(), topic()
    run.topic_made(first)
    lost(story)
    first.is_leaving = True
    run.topic_made(second)
    story.read((0, "c"), by="d")
    report = run.judge(story.history)
    assert (report.sends, report.seen) == (0, 0)


def test_values_are_told_without_what_fills_them_up() -> None:
    assert value_text(b"p0/t-1/7/.....") == "p0/t-1/7/"
    assert value_text(None) == ""


def test_a_run_whose_logs_lack_records_is_found_by_its_history_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    read = PartitionLog.read

    def read_without_some(log: PartitionLog, offset: int, max_bytes: int, *more: Any) -> Any:
        if log.name.startswith("topic") and offset < 10:
            return read(log, offset, 1, *more) if offset < 3 else read(log, 10, max_bytes, *more)
        return read(log, offset, max_bytes, *more)

    monkeypatch.setattr(PartitionLog, "read", read_without_some)

    def tell_quietly(watch: Watch, event: Any, *what: Any) -> None:
        with suppress(Violation):  # the other checkers would find it sooner
            event(*what)

    monkeypatch.setattr(Watch, "tell", tell_quietly)
    add = Checkers.__init__
    monkeypatch.setattr(
        Checkers, "__init__", lambda checkers, every: add(checkers, [each for each in every if isinstance(each, RecordedRun)])
    )
    with pytest.raises(RunFailed, match=r"the history of the clients: (.*\n)+.*lost write"):
        run_cluster_seed(SEED)
