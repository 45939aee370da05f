"""How many records may be sent by now, for a given rate."""

from __future__ import annotations

PAUSE_S_MIN = 0.001


class Pace:
    """Records per second since a start; a negative rate has no limit."""

    def __init__(self, records_per_s: float, start_s: float) -> None:
        self._rate = records_per_s
        self._start_s = start_s

    def due(self, sent: int, now_s: float) -> int | None:
        """How many records to send now, after `sent`; None: any number."""
        if self._rate < 0:
            return None
        return max(0, int((now_s - self._start_s) * self._rate) + 1 - sent)

    def pause_s(self, sent: int, now_s: float) -> float:
        """How long to wait until the next record is due. Never less than `PAUSE_S_MIN`: high rates are met in small groups."""
        return max(PAUSE_S_MIN, self._start_s + sent / self._rate - now_s)
