"""How much a trigger takes: maxOffsetsPerTrigger, and minOffsetsPerTrigger with maxTriggerDelay. Pure."""

from __future__ import annotations

from ottla.spark.source.offsets import Offsets


def limit_offsets(starts: Offsets, ends: Offsets, records_max: int) -> Offsets:
    """Offsets at most `records_max` records behind `starts` in all, shared out in proportion to what each partition has."""
    sizes = {each: max(0, end - starts.get(each, 0)) for each, end in ends.items()}
    total = sum(sizes.values())
    if total <= records_max:
        return ends
    found: Offsets = {}
    for each, size in sizes.items():
        # At least one record where there is any: a small partition beside a huge one must not starve.
        taken = max(records_max * size // total, 1) if size else 0
        found[each] = min(starts.get(each, 0) + taken, ends[each])
    return found


class Delay:
    """Lets a trigger pass while there is too little to read, but not longer than the option says."""

    def __init__(self, records_min: int | None, delay_max_ms: int) -> None:
        self._records_min = records_min
        self._delay_max_ms = delay_max_ms
        self._triggered_ms: float | None = None

    def is_due_later(self, starts: Offsets, ends: Offsets, now_ms: float) -> bool:
        """Whether to read nothing yet. The first batch of a run is never delayed, as in Spark's own source."""
        if self._records_min is None:
            return False
        records = sum(max(0, end - starts.get(each, 0)) for each, end in ends.items())
        is_late = self._triggered_ms is None or now_ms - self._triggered_ms >= self._delay_max_ms
        if records < self._records_min and not is_late:
            return True
        self._triggered_ms = now_ms
        return False
