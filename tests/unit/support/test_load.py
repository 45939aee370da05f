"""The load that tests of faults rely on: it notices what is lost, doubled or out of order."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.peers.load import Load


class FakeClients:
    """A face whose producer and consumer share a list in memory, with one fault at the tenth record."""

    kind = "fake"

    def __init__(self, fault: str) -> None:
        self.log: list[tuple[bytes, bytes]] = []
        self.fault = fault
        self.taken = 0

    def producer(self, bootstrap: str, **settings: Any) -> Any:
        return self

    consumer = producer

    def send(self, topic: str, value: bytes, key: bytes) -> Any:
        offset = len(self.log)
        is_tenth = int(value) == 10
        if is_tenth and self.fault == "fails":
            raise OSError("a test")
        if is_tenth and self.fault == "out of order":
            self.log.insert(offset - 7, (key, value))  # before the record of the same key
        elif not (is_tenth and self.fault == "lost"):
            self.log += [(key, value)] * (2 if is_tenth and self.fault == "doubled" else 1)
        return SimpleNamespace(result=lambda timeout: SimpleNamespace(partition=0, offset=offset))

    def assign(self, partitions: Any) -> None: ...

    def poll(self, timeout: float) -> list[Any]:
        if len(self.log) < 20 and self.fault != "fails":
            return []
        first, self.taken = self.taken, len(self.log)
        places = range(first, self.taken)
        return [SimpleNamespace(key=self.log[at][0], value=self.log[at][1], partition=0, offset=at) for at in places]

    def end_offsets(self, partitions: Any) -> dict[int, int]:
        return {0: len(self.log) + (self.fault == "lost")}  # a lost record that left its offset is noticed, too


def test_a_sound_load_passes() -> None:
    with Load(FakeClients("none"), "", "t", 1) as load:  # type: ignore[arg-type]
        load.await_more(20)
        load.await_sent(5)
    assert len(load.found) == len(load.deliveries) >= 20


@pytest.mark.parametrize("fault", ["doubled", "out of order"])
def test_a_fault_is_noticed(fault: str) -> None:
    with pytest.raises(AssertionError), Load(FakeClients(fault), "", "t", 1) as load:  # type: ignore[arg-type]
        load.await_more(20)


def test_a_lost_record_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.peers.load.READ_S", 0.1)
    with pytest.raises(AssertionError), Load(FakeClients("lost"), "", "t", 1) as load:  # type: ignore[arg-type]
        load.await_more(20)


def test_an_error_of_a_client_is_raised() -> None:
    with pytest.raises(OSError, match="a test"), Load(FakeClients("fails"), "", "t", 1) as load:  # type: ignore[arg-type]
        load.await_sent(1000)
