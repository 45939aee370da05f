"""Events reach every checker, and entries tell batches apart."""

from tests.support.nodes.metadata_batches import logged

from ottla.sim.cluster.checkers.checker import ClusterChecker, ClusterCheckers


class Noting(ClusterChecker):
    def __init__(self) -> None:
        self.seen: list[tuple[str, int, int]] = []

    def voted(self, node: str, epoch: int, candidate_id: int) -> None:
        self.seen.append((node, epoch, candidate_id))


def test_every_checker_gets_every_event() -> None:
    both = [Noting(), Noting()]
    ClusterCheckers([*both]).voted("n1", 3, 2)
    assert [each.seen for each in both] == [[("n1", 3, 2)]] * 2


def test_equal_batches_have_equal_entries() -> None:
    assert logged(4, 2).entry == logged(4, 2).entry
    assert logged(4, 2).entry != logged(4, 3).entry
    assert logged(4, 2).entry != logged(4, 2, timestamp_ms=1).entry


def test_a_batch_is_decoded_with_its_place() -> None:
    batch = logged(4, 2).decoded()
    assert (batch.base_offset, batch.last_offset, batch.epoch, len(batch.records)) == (4, 4, 2, 1)
