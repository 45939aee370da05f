"""Every transaction ends: within `bound_s` after clients stop writing, the last stable offset reaches the high watermark."""

from ottla.sim.checkers.checker import Checker, Place, Violation


class TimelyEndings(Checker):
    """`bound_s`: the longest transaction timeout, plus the interval of the checks for it, plus the error of the clocks."""

    def __init__(self, bound_s: float) -> None:
        self._bound_s = bound_s

    def stability_answered(self, place: Place, last_stable_offset: int, high_watermark: int, waited_s: float) -> None:
        if last_stable_offset < high_watermark and waited_s > self._bound_s:
            raise Violation(
                f"{place} is stable up to {last_stable_offset} of {high_watermark} only: some transaction has not ended in "
                f"{waited_s:.1f} s"
            )
