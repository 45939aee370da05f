"""Members of consumer groups that commit what they have read, and a look at the offsets of groups from time to time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from tests.support.peers.load import QUICK
from tests.support.servers.kafka_server import HANG_S

import ottla
from ottla.errors import KafkaError
from ottla.ids import TopicPartition
from ottla.sim.histories.history import History, Seen


class Member:
    """A thread with a consumer in a group of one protocol ("classic" or "consumer"); it commits after each poll.

    Subclasses have a consumer.
    """

    def __init__(self, history: History, name: str, group: str) -> None:
        self.name = name
        self.seen = 0
        self.failures: list[str] = []
        self.refused: list[str] = []
        """Commits that were refused, as they may be after a rebalance."""
        self._history = history
        self._group = group
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name=name)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._is_over:
                records = self._poll()
                if records:
                    self._commit_next(records)
            self._close()
        except Exception as failure:
            self.failures.append(f"{self.name}: {failure!r}")

    def _poll(self) -> list[Seen]:
        """The next records; they are in the history already."""
        raise NotImplementedError

    def _commit(self, offsets: dict[TopicPartition, int]) -> str | None:
        """Commit; why it was refused, if it was."""
        raise NotImplementedError

    def _close(self) -> None:
        raise NotImplementedError

    def _saw(self, records: list[Seen]) -> None:
        self._history.polled(self.name, records, group=self._group, is_committed=True)
        self.seen += len(records)

    def _commit_next(self, records: list[Seen]) -> None:
        offsets = {place: offset + 1 for place, offset, _ in records}
        commit = self._history.commits(self._group, offsets)
        refused = self._commit(offsets)
        if refused is None:
            commit.acknowledged()
        else:
            self.refused.append(refused)

    def stop(self) -> None:
        self._is_over = True
        self._thread.join(HANG_S)
        if self._thread.is_alive():
            self.failures.append(f"{self.name} hangs since {HANG_S} s")


class RecordedMember(Member):
    """Ottla's synchronous consumer."""

    def __init__(self, history: History, name: str, bootstrap: str, topic: str, group: str, protocol: str) -> None:
        self._consumer = ottla.Consumer(
            bootstrap,
            group_id=group,
            group_protocol=protocol,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            fetch_max_wait_ms=100,
            **QUICK,
        )
        self._consumer.subscribe([topic], on_assigned=lambda places: history.assigned(name, places, group))
        super().__init__(history, name, group)

    def _poll(self) -> list[Seen]:
        found = self._consumer.poll(0.2)
        records = [Seen(TopicPartition(each.topic, each.partition), each.offset, str(each.value, "utf-8")) for each in found]
        if records:
            self._saw(records)
        return records

    def _commit(self, offsets: dict[TopicPartition, int]) -> str | None:
        try:
            self._consumer.commit(offsets)
        except KafkaError as refused:
            return repr(refused)
        return None

    def _close(self) -> None:
        self._consumer.close()


class ConfluentMember(Member):
    """librdkafka's consumer."""

    def __init__(self, history: History, name: str, bootstrap: str, topic: str, group: str, protocol: str) -> None:
        from confluent_kafka import Consumer

        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
        self._polled: list[Seen] = []
        self._consumer = Consumer(settings)

        def assigned(_: Any, places: Any) -> None:
            history.assigned(name, [TopicPartition(each.topic, each.partition) for each in places], group)

        def revoked(_: Any, places: Any) -> None:
            self._polled.clear()  # others read on from the committed offsets: a commit of these would take them back

        self._consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
        super().__init__(history, name, group)

    def _poll(self) -> list[Seen]:
        self._polled = []
        timeout_s = 0.2
        while (message := self._consumer.poll(timeout_s)) is not None:
            error = message.error()
            if error is not None:
                if error.fatal():
                    raise AssertionError(f"the consumer has failed: {error}")
                continue  # the library tries again by itself
            place = TopicPartition(message.topic() or "", message.partition() or 0)
            record = Seen(place, message.offset() or 0, str(message.value() or b"", "utf-8"))
            self._saw([record])
            self._polled.append(record)
            timeout_s = 0
        return self._polled

    def _commit(self, offsets: dict[TopicPartition, int]) -> str | None:
        from confluent_kafka import KafkaException
        from confluent_kafka import TopicPartition as Place

        places = [Place(place.topic, place.partition, offset) for place, offset in offsets.items()]
        try:
            answered = self._consumer.commit(offsets=places, asynchronous=False)
        except KafkaException as refused:
            return repr(refused)
        return next((repr(each.error) for each in answered or () if each.error is not None), None)

    def _close(self) -> None:
        self._consumer.close()


MEMBERS: dict[str, Callable[..., Member]] = {"ottla": RecordedMember, "confluent": ConfluentMember}


class OffsetsWatch:
    """A thread that asks for the committed offsets of groups again and again."""

    def __init__(self, history: History, bootstrap: str, groups: list[str]) -> None:
        self.failures: list[str] = []
        self.answers = self.missed = 0
        self._history = history
        self._admin = ottla.Admin(bootstrap, **QUICK)
        self._groups = groups
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._is_over.wait(0.3):
                self.look()
        except Exception as failure:
            self.failures.append(f"offsets: {failure!r}")

    def look(self) -> None:
        asked_s = time.monotonic()
        found_by_group = self._admin.list_consumer_group_offsets(self._groups, require_stable=True)
        self.missed += len(found_by_group.errors)  # a group whose coordinator has just died is asked for the next time
        for group, offsets in found_by_group.values_found.items():
            found = {place: each.offset for place, each in offsets.items() if each is not None}
            self._history.offsets_found(group, found, asked_s)
            self.answers += 1

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join(HANG_S)
        self._admin.close()
