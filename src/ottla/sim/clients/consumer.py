"""A consumer in assign mode, with incremental fetch sessions, long polls and offset resets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ottla.errors.codes import ErrorCode, error_name
from ottla.sim.checkers.checker import Place, Watermarks
from ottla.sim.clients.client import BACKOFF_S_MAX, Client, LinkError, Stage
from ottla.sim.clients.fetching import EARLIEST, LATEST, answers_by_place, fetch_request, offset_request, records_from

GONE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
SESSION_OVER = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)


@dataclass(frozen=True, slots=True)
class ConsumerPlan:
    """How one consumer behaves."""

    is_committed: bool
    has_session: bool
    max_wait_ms: int
    pause_s_max: float
    version: int


class Consumer(Client):
    """Reads `places` until the run is ending. Resets its position when it is out of range."""

    def __init__(self, stage: Stage, name: str, plan: ConsumerPlan, places: list[Place]) -> None:
        super().__init__(stage, name)
        self.plan = plan
        self.read = 0
        self._positions: dict[Place, int] = dict.fromkeys(places, 0)
        self._session = (0, 0)
        self._session_positions: dict[Place, int] = {}  # the positions that the session has
        self._session_connection = ""

    async def run(self) -> None:
        while self._positions and not self.stage.is_ending:
            try:
                await self._poll()
            except LinkError as error:
                self.note("cut off", type(error).__name__)
                self._session = (0, 0)
                await self.pause(BACKOFF_S_MAX)
            await self.pause(self.plan.pause_s_max)

    async def _poll(self) -> None:
        link = await self.link()
        if self._session_connection != self.connection:
            self._session, self._session_connection = (0, 0), self.connection
        is_new = not self.plan.has_session or self._session[0] == 0
        if is_new:
            self._session_positions = {}
        wanted = {place: at for place, at in self._positions.items() if self._session_positions.get(place) != at}
        request = fetch_request(
            wanted,
            self.plan.version,
            session=self._session if self.plan.has_session else (0, -1),
            max_wait_ms=self.plan.max_wait_ms,
            isolation_level=1 if self.plan.is_committed else 0,
        )
        answer = await link.request(request, version=self.plan.version)
        if answer.error_code:
            if answer.error_code not in SESSION_OVER:
                self.note("refused", error_name(answer.error_code))
                await self.pause(BACKOFF_S_MAX)
            self._session = (0, 0)
            return
        self._session_positions.update(wanted)
        if self.plan.has_session:
            self._session = (answer.session_id, self._session[1] + 1) if answer.session_id else (0, 0)
        parts = answers_by_place(answer, list(self._positions), self.plan.version)
        for place, part in parts.items():  # before any await: a power loss must not come between the answer and its report
            if part.error_code == ErrorCode.NONE:
                self._take_records(place, part)
        for place, part in parts.items():
            if part.error_code != ErrorCode.NONE:
                await self._take_refusal(place, part.error_code)

    async def _take_refusal(self, place: Place, code: int) -> None:
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self.note("out of range", f"{place} {self._positions[place]}")
            await self._reset(place)
        elif code in GONE:
            del self._positions[place]
            self._session = (0, 0)
        else:
            self.note("refused", f"{place} {error_name(code)}")
            self._session_positions.pop(place, None)
            await self.pause(BACKOFF_S_MAX)

    def _take_records(self, place: Place, part: Any) -> None:
        marks = Watermarks(part.log_start_offset, part.last_stable_offset, part.high_watermark)
        self.stage.checkers.watermarks_answered(self.connection, place, marks)
        start = self._positions[place]
        aborted = part.aborted_transactions if self.plan.is_committed else ()
        records, self._positions[place], _ = records_from(part.records, start, aborted)
        if self.plan.is_committed:
            self.stage.checkers.seen_committed(place, start, self._positions[place], records)
        if not records:
            return
        self.read += len(records)
        self.note("read", f"{place} {records[0].offset}-{records[-1].offset} of {part.high_watermark}")
        self.stage.checkers.seen(place, records)

    async def _reset(self, place: Place) -> None:
        wanted = EARLIEST if self.random.random() < 0.7 else LATEST
        answer = (await self.ask(offset_request(place, wanted))).topics[0].partitions[0]
        if answer.error_code == ErrorCode.NONE:
            self._positions[place] = answer.offset
