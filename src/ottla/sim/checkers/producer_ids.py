"""No producer id is handed out twice, also across kills and power losses."""

from ottla.sim.checkers.checker import Checker, Violation


class UniqueProducerIds(Checker):
    """Remembers every producer id that was handed out."""

    def __init__(self) -> None:
        self._given: dict[int, int] = {}

    def producer_id_given(self, producer_id: int, epoch: int) -> None:
        if producer_id < 0:
            raise Violation(f"a producer was given the id {producer_id}")
        if producer_id in self._given:
            raise Violation(f"producer id {producer_id} was given to two producers")
        self._given[producer_id] = epoch
