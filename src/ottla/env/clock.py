"""The clock contract. Only `env/real` and `sim/` implement it; all other code is handed a `Clock`."""

from typing import Protocol


class Clock(Protocol):
    """Wall time for timestamps, monotonic time for durations."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch. May jump forwards and backwards."""
        ...

    def now_ns(self) -> int:
        """The same in nanoseconds. A kernel divides it itself: the call is the operating system's own."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that never go backwards, from an arbitrary start."""
        ...
