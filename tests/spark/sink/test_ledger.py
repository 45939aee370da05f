"""The decisions topic: created, read on, refused if it would lose decisions."""

from __future__ import annotations

import time

import pytest

from ottla import Admin, Producer
from ottla.spark.errors import SinkError
from ottla.spark.sink.ledger import PARTITIONS, Fence, Ledger
from ottla.spark.sink.protocol import Decision, HeldTransaction, State, encode
from ottla.testing import Broker


def client(broker: Broker) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": "1"}


def test_decisions_are_read_by_others_and_forgotten(shared_broker: Broker, admin: Admin) -> None:
    writer, reader = (Ledger(client(shared_broker), "ledger-1") for _ in range(2))
    assert reader.read("q1") is None  # no topic yet
    fences = [Fence(writer, name) for name in ("q1", "q2")]
    assert [fence.found for fence in fences] == [None, None]
    first, second = Decision("q1", 0, "run", State.DECIDED), Decision("q1", 0, "run", State.FINISHED)
    fences[0].write(first)
    fences[1].write(Decision("q2", 5, "run", State.ABORTED))
    found = reader.read("q1")
    assert found is not None
    assert found == fences[0].found
    assert found.decision == first
    fences[0].write(second)
    assert {query: each.decision.state for query, each in reader.read_all().items()} == {
        "q1": State.FINISHED,
        "q2": State.ABORTED,
    }
    fences[0].forget()
    assert (reader.read("q1"), fences[0].found) == (None, None)
    assert len(admin.describe_topics(["ledger-1"])["ledger-1"].partitions) == PARTITIONS
    settings = next(iter(admin.describe_configs([("topic", "ledger-1")]).values()))
    assert settings["cleanup.policy"].value == "compact"
    for each in (*fences, writer, reader):
        each.close()


def test_a_new_fence_ends_the_earlier_one(shared_broker: Broker) -> None:
    ledger = Ledger(client(shared_broker), "ledger-2")
    old, new = Fence(ledger, "q"), Fence(ledger, "q")
    with pytest.raises(SinkError, match="the decision about query q was not written to ledger-2"):
        old.write(Decision("q", 0, "old", State.DECIDED))
    new.write(Decision("q", 0, "new", State.DECIDED))
    found = ledger.read("q")
    assert found is not None
    assert found.decision.run == "new"
    for each in (old, new, ledger):
        each.close()


def test_what_was_read_does_not_count_after_the_topic_was_deleted(shared_broker: Broker, admin: Admin) -> None:
    """A process that lives longer than the topic believed what it had read, and created no topic again."""
    kept, other = (Ledger(client(shared_broker), "ledger-gone") for _ in range(2))
    fence = Fence(kept, "q")
    for batch in range(3):
        fence.write(Decision("q", batch, "run", State.FINISHED))
    fence.close()
    admin.delete_topics(["ledger-gone"]).raise_first()
    assert (kept.read("q"), kept.read_all()) == (None, {})
    fence = Fence(other, "q")
    for batch in range(2):
        fence.write(Decision("q", batch, "run", State.DECIDED))
    assert kept.read("q") == fence.found  # at a lower offset than the old one
    admin.delete_topics(["ledger-gone"]).raise_first()
    again = Fence(kept, "q")
    assert again.found is None
    for each in (fence, again, kept, other):
        each.close()


def test_a_topic_that_deletes_records_is_refused(shared_broker: Broker) -> None:
    shared_broker.create_topic("ledger-3")
    with pytest.raises(SinkError, match=r"ledger-3 has cleanup.policy=delete.*decisionsTopic"):
        Fence(Ledger(client(shared_broker), "ledger-3"), "q")


def test_records_of_others_are_refused_by_name(shared_broker: Broker) -> None:
    shared_broker.create_topic("ledger-4", config={"cleanup.policy": "compact"})
    with Producer(shared_broker.bootstrap_servers) as producer:
        producer.send("ledger-4", b"hello", key=b"q").result(30)
    ledger = Ledger(client(shared_broker), "ledger-4")
    with pytest.raises(SinkError, match="ledger-4: the record of query q is no decision"):
        ledger.read("q")
    ledger.close()


def test_a_decision_does_not_linger(shared_broker: Broker) -> None:
    """With linger.ms above 10 s, no decision was ever written in time."""
    linger_s = 3.0
    ledger = Ledger(client(shared_broker) | {"linger.ms": str(int(linger_s * 1000))}, "ledger-lingers")
    fence = Fence(ledger, "q1")
    began_s = time.monotonic()
    fence.write(Decision("q1", 0, "run", State.DECIDED))
    assert time.monotonic() - began_s < linger_s
    fence.close()
    ledger.close()


def test_a_decision_about_many_tasks_is_written(shared_broker: Broker) -> None:
    names = [f"ottla-sink.0f8fad5b-d9cb-469f-a165-70867728950e.{n * 2654435761 % (1 << 48):012x}.0" for n in range(20_000)]
    held = tuple(HeldTransaction(name, 4000 + task, 3, task, 1200) for task, name in enumerate(names))
    decision = Decision("q1", 0, "run", State.DECIDED, held)
    assert len(encode(decision)) > 1 << 20  # the default of max.request.size
    ledger = Ledger(client(shared_broker), "ledger-large")
    fence = Fence(ledger, "q1")
    fence.write(decision)
    assert ledger.read("q1") == fence.found
    fence.close()
    ledger.close()
