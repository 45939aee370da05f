"""A clock that stands still until a test moves it."""


class ManualClock:
    """`Clock` under a test's hand: `advance` moves both times on, `jump` moves wall time alone, either way."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = 0.0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_s(self) -> float:
        return self._monotonic_ms / 1000

    def advance(self, milliseconds: float) -> None:
        if milliseconds < 0:
            raise ValueError("time does not run backwards; to set the wall clock back, use jump()")
        self._monotonic_ms += milliseconds
        self._now_ms += int(milliseconds)

    def jump(self, milliseconds: int) -> None:
        """Set the wall clock forward or back, as an administrator or a time server would."""
        self._now_ms += milliseconds
