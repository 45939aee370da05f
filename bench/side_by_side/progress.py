"""Progress lines with the time since the start. They go to standard error; the table goes to standard output."""

import sys
import time


class Progress:
    def __init__(self) -> None:
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        print(f"[{minutes:2d}:{seconds:02d}] {text}", file=sys.stderr, flush=True)
