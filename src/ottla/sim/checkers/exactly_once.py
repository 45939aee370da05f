"""Every input record below an app's committed offset has exactly one output, and no other input record has any.

Output and offsets belong to one transaction, so both take effect or neither does.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from ottla.sim.checkers.checker import Checker, Place, SeenRecord, Violation


class ExactlyOnce(Checker):
    """Remembers the input record of each output."""

    def __init__(self) -> None:
        self._made_of: dict[bytes, tuple[str, Place, int]] = {}
        self._inputs: dict[Place, list[int]] = {}
        self._outputs: defaultdict[tuple[str, Place], Counter[int]] = defaultdict(Counter)
        self.judged = 0

    def transformed(self, app: str, origin: Place, offset: int, value: bytes) -> None:
        self._made_of[value] = (app, origin, offset)

    def audited_committed(self, place: Place, records: list[SeenRecord]) -> None:
        self._inputs[place] = [record.offset for record in records]
        for record in records:
            made_of = self._made_of.get(record.value)
            if made_of is not None:
                app, origin, offset = made_of
                self._outputs[app, origin][offset] += 1

    def app_ended(self, app: str, offsets: dict[Place, int]) -> None:
        for origin, end in offsets.items():
            found = self._outputs[app, origin]
            wanted = [offset for offset in self._inputs[origin] if offset < end]
            self.judged += len(wanted)
            for offset in wanted:
                if found[offset] == 0:
                    raise Violation(f"{app} has committed {end} for {origin}, and nothing was made of the record at {offset}")
            for offset, count in found.items():
                if count > 1:
                    raise Violation(f"{app} made {count} outputs of the record at {offset} of {origin}")
                if offset >= end:
                    raise Violation(f"{app} has committed {end} for {origin}, but made something of the record at {offset}")
