"""Within one life of a node, log start, last stable offset and high watermark of a partition only rise.

Also: log start ≤ last stable offset ≤ high watermark.
"""

from ottla.sim.checkers.checker import Checker, Place, Violation, Watermarks


class RisingWatermarks(Checker):
    """Remembers the last answer on each connection."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, Place], Watermarks] = {}

    def watermarks_answered(self, connection: str, place: Place, marks: Watermarks) -> None:
        if not 0 <= marks.log_start_offset <= marks.last_stable_offset <= marks.high_watermark:
            raise Violation(f"{place}: these cannot all be true: {marks}")
        last = self._last.get((connection, place))
        if last is not None and any(now < before for now, before in zip(marks, last, strict=True)):
            raise Violation(f"{place} went back within one life of the node: {last}, and then {marks}")
        self._last[connection, place] = marks
