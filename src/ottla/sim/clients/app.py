"""A program that consumes, transforms and produces within transactions, or only produces.

An instance that has initialised the transactional id fetches the committed offsets and continues from there. It may vanish at
any point, leave a transaction open, exceed its timeout, or abort.
"""

from __future__ import annotations

import asyncio

from ottla.errors.codes import ErrorCode
from ottla.sim.checkers.checker import Place, SeenRecord, Transaction
from ottla.sim.clients.client import BACKOFF_S_MAX, LinkError, Stage
from ottla.sim.clients.fetching import answers_by_place, fetch_request, records_from
from ottla.sim.clients.transactor import Fenced, MustAbort, Transactor, Vanished
from ottla.sim.coordination import AppPlan

FETCH_VERSION = 12
RECORDS_MAX = 5
PAUSE_S_MAX = 0.05
TAKEOVER_PAUSE_S_MAX = 1.0


class App(Transactor):
    """One instance of a program. Without `inputs` it only produces."""

    def __init__(self, stage: Stage, name: str, app: AppPlan, version: int, inputs: list[Place], outputs: list[Place]) -> None:
        super().__init__(stage, name, app, version)
        self.inputs, self._outputs = inputs, outputs
        self._positions: dict[Place, int] = {}
        self._begun = 0
        self.committed = 0

    async def run(self) -> None:
        while not self.stage.is_ending:
            try:
                await self._live()
            except LinkError as error:
                self.note("cut off", type(error).__name__)
            except (Fenced, Vanished) as end:
                self.note("over", type(end).__name__)
            await self.pause(TAKEOVER_PAUSE_S_MAX if self.random.random() < 0.5 else BACKOFF_S_MAX)

    async def _live(self) -> None:
        await self.initialise()
        await self._find_positions()
        while not self.stage.is_ending:
            if self.random.random() < 0.03:
                self.hang_up()
                raise Vanished
            await self._transact()
            await self.pause(PAUSE_S_MAX)

    async def _find_positions(self) -> None:
        found = await self.fetch_offsets_until_answered(self.inputs)
        self._positions = {place: max(0, offset) for place, offset in found.items()}

    # A transaction

    async def _transact(self) -> None:
        offsets: dict[Place, int] = {}
        taken: list[tuple[Place | None, int]] = [(None, index) for index in range(self.random.randint(1, 3))]
        if self.inputs:
            taken = []
            for place in self.random.sample(self.inputs, self.random.randint(1, len(self.inputs))):
                records, end = await self._read(place)
                taken += [(place, record.offset) for record in records]
                if end > self._positions[place]:
                    offsets[place] = end
            if not taken:
                await self.pause(BACKOFF_S_MAX)
                return
        transaction = Transaction(f"{self.name}.{self._begun}", self.transactional_id)
        self._begun += 1
        self.begin()
        is_commit = self.random.random() < 0.8
        try:
            await self.write(transaction, self._transform(transaction, taken))
            if offsets:
                await self.commit_offsets(offsets)
            await self._delay_or_vanish()
        except MustAbort:
            is_commit = False
        await self.end(transaction, offsets, is_commit)
        if is_commit:
            self.committed += 1
            self._positions.update(offsets)

    async def _delay_or_vanish(self) -> None:
        chance = self.random.random()
        if chance < 0.04:
            raise Vanished  # the transaction stays open
        if chance < 0.08:
            await asyncio.sleep(self._timeout_ms / 1000 * self.random.uniform(0.5, 1.5))

    def _transform(self, transaction: Transaction, taken: list[tuple[Place | None, int]]) -> dict[Place, list[bytes]]:
        made: dict[Place, list[bytes]] = {}
        for origin, offset in taken:
            place = self.random.choice(self._outputs)
            value = f"{transaction.name}/{place}/{origin}@{offset}/".encode()
            made.setdefault(place, []).append(value)
            if origin is not None:
                self.stage.checkers.transformed(self.transactional_id, origin, offset, value)
        return made

    async def _read(self, place: Place) -> tuple[list[SeenRecord], int]:
        """The next few records of an input, and the offset after them."""
        start = self._positions[place]
        request = fetch_request({place: start}, FETCH_VERSION, isolation_level=1)
        part = answers_by_place(await self.ask(request, FETCH_VERSION), [place], FETCH_VERSION)[place]
        if part.error_code:
            self.explain("Fetch", part.error_code, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return [], start
        records, end, _ = records_from(part.records, start, part.aborted_transactions)
        self.stage.checkers.seen(place, records)
        self.stage.checkers.seen_committed(place, start, end, records)
        if len(records) > RECORDS_MAX:
            records = records[:RECORDS_MAX]
            end = records[-1].offset + 1
        return records, end
