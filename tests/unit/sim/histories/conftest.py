"""A history to fill in, with a clock that the test sets."""

import pytest

from ottla.ids import TopicPartition
from ottla.sim.histories.checks import check
from ottla.sim.histories.history import History, Poll, Seen, Send, Transaction

PLACE = TopicPartition("t", 0)
OTHER = TopicPartition("t", 1)


class Story:
    """Short forms of what a history records. `found` are the names of the checks that find something."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.history = History(self._tick)

    def _tick(self) -> float:
        self.now_s += 1.0
        return self.now_s

    def stored(
        self,
        value: str,
        offset: int,
        transaction: Transaction | None = None,
        *,
        by: str = "p",
        at: TopicPartition = PLACE,
        is_repeatable: bool = False,
    ) -> Send:
        send = self.history.send(by, at, value, transaction, is_repeatable=is_repeatable)
        send.stored(offset)
        return send

    def read(
        self,
        *records: tuple[int, str],
        by: str = "c",
        at: TopicPartition = PLACE,
        group: str | None = None,
        is_committed: bool = False,
        transaction: Transaction | None = None,
    ) -> Poll:
        seen = [Seen(at, offset, value) for offset, value in records]
        return self.history.polled(by, seen, group=group, is_committed=is_committed, transaction=transaction)

    def commit(self, transaction: Transaction) -> None:
        transaction.asks("commit")
        transaction.ended()

    def found(self, is_read_whole: bool = True) -> list[str]:
        return [finding.check for finding in check(self.history, is_read_whole=is_read_whole).findings]


@pytest.fixture
def story() -> Story:
    return Story()
