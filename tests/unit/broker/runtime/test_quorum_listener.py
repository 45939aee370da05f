"""Several listeners of one quorum."""

from ottla.broker.runtime.metadata_log import MetadataBatch
from ottla.broker.runtime.quorum_listener import Listeners


class Notes:
    def __init__(self, name: str, notes: list[object]) -> None:
        self._name, self._notes = name, notes

    def committed(self, batches: object) -> None:
        self._notes.append((self._name, batches))

    def loaded_snapshot(self, snapshot: object) -> None:
        self._notes.append((self._name, snapshot))

    def leader_changed(self, leader_id: int | None, epoch: int) -> None:
        self._notes.append((self._name, leader_id, epoch))


def test_every_call_reaches_each_listener_in_order() -> None:
    notes: list[object] = []
    both = Listeners(Notes("first", notes), Notes("second", notes))
    batch = MetadataBatch(0, 0, 1, 0, 10)
    both.leader_changed(None, 4)
    both.loaded_snapshot(batch)
    both.committed([batch])
    assert notes == [
        ("first", None, 4),
        ("second", None, 4),
        ("first", batch),
        ("second", batch),
        ("first", [batch]),
        ("second", [batch]),
    ]
