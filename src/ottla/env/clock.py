"""What time it is: the contract. No room below `env/real` and `sim/` asks the operating system."""

from typing import Protocol


class Clock(Protocol):
    """Wall time for what is written down, monotonic time for what is measured."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch. May jump, both ways."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that never go backwards, from an arbitrary start."""
        ...
