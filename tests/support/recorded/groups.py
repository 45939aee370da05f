"""Members of consumer groups that commit what they have read, and a look at the offsets of groups from time to time."""

from __future__ import annotations

import threading
import time

from tests.support.peers.load import QUICK
from tests.support.servers.kafka_server import HANG_S

import ottla
from ottla.errors import KafkaError
from ottla.ids import TopicPartition
from ottla.sim.histories.history import History, Seen


class RecordedMember:
    """A thread with an Ottla consumer in a group of one protocol ("classic" or "consumer"); it commits after each poll."""

    def __init__(self, history: History, name: str, bootstrap: str, topic: str, group: str, protocol: str) -> None:
        self.name = name
        self.seen = 0
        self.failures: list[str] = []
        self.refused: list[str] = []
        """Commits that were refused, as they may be after a rebalance."""
        self._history = history
        self._group = group
        self._is_over = False
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
        self._thread = threading.Thread(target=self._run, name=name)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._is_over:
                self._poll()
            self._consumer.close()
        except Exception as failure:
            self.failures.append(f"{self.name}: {failure!r}")

    def _poll(self) -> None:
        found = self._consumer.poll(0.2)
        if not found:
            return
        records = [Seen(TopicPartition(each.topic, each.partition), each.offset, str(each.value, "utf-8")) for each in found]
        self._history.polled(self.name, records, group=self._group, is_committed=True)
        self.seen += len(records)
        offsets = {place: offset + 1 for place, offset, _ in records}
        commit = self._history.commits(self._group, offsets)
        try:
            self._consumer.commit(offsets)
        except KafkaError as refused:
            self.refused.append(repr(refused))
        else:
            commit.acknowledged()

    def stop(self) -> None:
        self._is_over = True
        self._thread.join(HANG_S)
        if self._thread.is_alive():
            self.failures.append(f"{self.name} hangs since {HANG_S} s")


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
