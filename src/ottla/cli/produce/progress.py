"""What a person sees while records are sent: a progress line on a terminal, and messages when brokers are lost and found again.

The line goes to standard error if that is a terminal and no prompt is shown. Messages go there in any case.
"""

from __future__ import annotations

import asyncio
import sys
import time

from ottla.cli.common.output import warn
from ottla.cli.produce.input import Input
from ottla.cli.produce.ledger import Ledger
from ottla.errors.texts import counted, sized

EVERY_S = 0.5
STALLED_AFTER_S = 5.0
"""Records that wait this long without one being stored are worth a message."""


class Progress:
    """Shows how far the records of `source` are."""

    def __init__(self, ledger: Ledger, source: Input, has_prompt: bool = False) -> None:
        self._ledger = ledger
        self._source = source
        self._has_line = sys.stderr is not None and sys.stderr.isatty() and not has_prompt
        self._width = 0
        self._start_s = self._moved_s = time.monotonic()
        self._stored = 0
        self._is_disturbed = False
        self.is_ending = False
        """Whether the client's messages are no longer of interest: what became of the records is said at the end."""

    async def run(self) -> None:
        """Show what is new, until cancelled."""
        while True:
            await asyncio.sleep(EVERY_S)
            self.look(time.monotonic())

    def look(self, now_s: float) -> None:
        """Show the state now."""
        ledger = self._ledger
        if ledger.stored > self._stored or not ledger.pending:
            self._moved_s = now_s
            if self._is_disturbed and ledger.stored > self._stored:
                self._is_disturbed = False
                self._message("records are being stored again")
        elif not self._is_disturbed and now_s - self._moved_s >= STALLED_AFTER_S:
            self._is_disturbed = True
            self._message(
                f"no answer for {now_s - self._moved_s:.0f} s to {counted(ledger.pending, 'record')}: the brokers are slow, or "
                "cannot be reached"
            )
        self._stored = ledger.stored
        if self._has_line:
            self._draw(self._line(now_s))

    def client_says(self, text: str) -> None:
        """Show a message of the client, such as that a broker is lost."""
        if not self.is_ending:
            self._is_disturbed = True
            self._stored = self._ledger.stored  # what was stored before does not mean that the broker is back
            self._message(text)

    def interrupted(self, grace_s: float) -> None:
        """Say why the command does not end at once, if it does not."""
        pending = self._ledger.pending
        if pending:
            self._message(f"ending: up to {grace_s:g} s for {counted(pending, 'record')} to be stored; Ctrl-C ends at once")

    def clear(self) -> None:
        """Take the progress line away."""
        if self._width:
            sys.stderr.write(f"\r{' ' * self._width}\r")
            sys.stderr.flush()
            self._width = 0

    def _message(self, text: str) -> None:
        self.clear()
        warn(text)

    def _line(self, now_s: float) -> str:
        ledger, source = self._ledger, self._source
        seconds = max(now_s - self._start_s, 0.001)
        # Of what was read, that part is stored that its records are.
        share = min(1.0, ledger.stored / ledger.read) if ledger.read else 0.0
        stored_bytes = source.read_bytes * share
        percent = f"{100 * stored_bytes / source.size_bytes:3.0f} %  " if source.size_bytes else ""
        waiting = f"  waiting for {now_s - self._moved_s:.0f} s" if self._is_disturbed else ""
        speed = f"{ledger.stored / seconds:,.0f}/s, {sized(int(stored_bytes / seconds))}/s"
        return f"{percent}{counted(ledger.stored, 'record')} stored, {speed}{waiting}"

    def _draw(self, line: str) -> None:
        sys.stderr.write(f"\r{line.ljust(self._width)}")
        sys.stderr.flush()
        self._width = len(line)
