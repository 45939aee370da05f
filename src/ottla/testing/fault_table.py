"""Fault injection, the node's side: which faults meet a request, and how it is then handled.

All faults that fit a request apply, in the order they were added: delays add up, and errors of different partitions are
combined. Of drop, hang and lost reply only the first applies. Requests of the test's own helpers are not affected. Runs on the
node's event loop.

An error for a part of a request: the part is removed before the request is handled, and its error is added to the response. So
it has no effect: a failed partition of a Produce request is not appended to, a failed topic is not created. Two APIs are
different: a Fetch response also has partitions of the session that the request does not name, and a Metadata request without
topics returns all of them. There the response is changed instead.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final, NamedTuple, cast

from ottla.broker.net.listeners import Listeners
from ottla.broker.requests.apis import SERVED, load_handler
from ottla.broker.requests.context import RequestContext
from ottla.broker.requests.interception import Interception
from ottla.broker.requests.topics import add_answers, is_about, is_empty, session_partitions, subjects, take_out, topic_name
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode, error_name
from ottla.errors.texts import counted
from ottla.ids import ZERO_UUID
from ottla.testing import fault_rules
from ottla.testing.errors import NotRunning
from ottla.testing.fault_rules import HELPER_CLIENT_ID, FaultRule
from ottla.testing.faults import describe
from ottla.testing.logs import stamp
from ottla.testing.request_trace import details
from ottla.wire.apis import APIS, ApiKey
from ottla.wire.base import Message
from ottla.wire.messages.fetch import FetchableTopicResponse, PartitionData
from ottla.wire.messages.metadata import MetadataResponseTopic

FOREVER_S: Final = 10 * 365 * 24 * 3600.0
HELD_KEPT: Final = 20
"""Of each fault the last requests that it held."""


class HeldRequest(NamedTuple):
    """A request that a delay or a hang keeps from being handled."""

    what: str
    connection_id: int
    since: float
    until_s: float


class ActiveFault:
    """One added fault, how often it was met, and the requests that it holds."""

    __slots__ = ("held", "hits", "rule")

    def __init__(self, rule: FaultRule) -> None:
        self.rule = rule
        self.hits = 0
        self.held: list[HeldRequest] = []

    @property
    def is_spent(self) -> bool:
        return self.rule.times is not None and self.hits >= self.rule.times

    def fits(self, context: RequestContext, request: Message) -> bool:
        rule = self.rule
        return (
            not self.is_spent
            and rule.api_key in (None, context.api_key)
            and rule.client_id in (None, context.client_id)
            and (rule.topic is None or is_about(context, request, rule.topic, rule.partition))
        )


class FaultTable:
    """The faults of one node."""

    def __init__(self, listeners: Listeners) -> None:
        self._listeners = listeners
        self._faults: dict[int, ActiveFault] = {}
        self._hits_of_removed: dict[int, int] = {}
        """Fault id → hits, of faults removed during this run of the node."""
        self._removed: list[ActiveFault] = []
        """Removed faults, which may still hold requests."""
        self._helper_connections: set[int] = set()
        self._held_until_s: dict[int, float] = {}
        """Connection → when its last delayed request is handled."""
        self._hit = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    # Commands of the test

    async def command(self, name: str, values: dict[str, Any]) -> Any:
        """Run one of `watch`, `add`, `remove`, `clear`, `hits`, `await_hits`."""
        match name:
            case "watch":
                return None  # creates the table: from now on it learns the helpers' connections from their requests
            case "add":
                return self.add(values["id"], FaultRule(*values["rule"]))
            case "remove":
                return self.remove(values["id"])
            case "clear":
                return self.clear()
            case "hits":
                return self.hits(values["id"])
            case "await_hits":
                return await self.await_hits(values["id"], values["count"], values["timeout_s"])
        raise ValueError(f"there is no command {name}")

    def add(self, fault_id: int, rule: FaultRule) -> None:
        self._faults[fault_id] = ActiveFault(rule)
        if rule.kind == fault_rules.REFUSE_CONNECTIONS:
            self._update_refusing()
            for connection in self._listeners.connections:
                if connection.info.id not in self._helper_connections and not connection.info.is_controller_listener:
                    connection.stream.close()

    def remove(self, fault_id: int) -> None:
        fault = self._faults.pop(fault_id, None)
        if fault is not None:
            self._hits_of_removed[fault_id] = fault.hits
            self._removed.append(fault)
        self._update_refusing()

    def clear(self) -> None:
        for fault_id in list(self._faults):
            self.remove(fault_id)

    def hits(self, fault_id: int) -> int:
        """How often a fault was met; `NotRunning` if it was added before the broker was restarted."""
        fault = self._faults.get(fault_id)
        if fault is not None:
            return fault.hits
        if fault_id in self._hits_of_removed:
            return self._hits_of_removed[fault_id]
        raise NotRunning("the fault was forgotten when the broker was stopped: look at its hits before that")

    async def await_hits(self, fault_id: int, count: int, timeout_s: float) -> int:
        """Wait until the fault was met `count` times, at most `timeout_s`; returns how often it was met."""
        try:
            async with asyncio.timeout(timeout_s):
                while self.hits(fault_id) < count:
                    await self._hit.wait()
        except TimeoutError:
            pass
        return self.hits(fault_id)

    def _update_refusing(self) -> None:
        is_refusing = any(fault.rule.kind == fault_rules.REFUSE_CONNECTIONS for fault in self._faults.values())
        if is_refusing and not self._listeners.is_refusing:
            self._listeners.on_refused = self._refused
        self._listeners.is_refusing = is_refusing

    def close_stuck(self) -> None:
        """Close the connections with delayed requests, so that a stop does not wait for them."""
        now_s = self._loop.time()
        for connection in self._listeners.connections:
            if self._held_until_s.get(connection.info.id, 0.0) > now_s:
                connection.stream.close()

    def report(self) -> list[str]:
        """The faults in words, for a failed test: which are active, how often each was met, what each holds."""
        lines = []
        for fault in (*self._faults.values(), *self._removed):
            held = [line for each in fault.held if (line := self._held_line(each)) is not None]
            is_active = any(fault is each for each in self._faults.values())
            if is_active or held:
                met = "has met no request" if not fault.hits else f"has met {counted(fault.hits, 'request')}"
                lines += [f"{describe(fault.rule)} {met}{'' if is_active else ', and was removed'}", *held]
        return lines

    def _held_line(self, held: HeldRequest) -> str | None:
        """A request that is held still, or that its client has given up; None if it was handled."""
        if held.until_s <= self._loop.time():
            return None
        is_open = any(each.info.id == held.connection_id for each in self._listeners.connections)
        state = f"for {time.time() - held.since:.1f} s now" if is_open else "until its client closed the connection"
        return f"  holds {held.what}, since {stamp(held.since)}, {state}"

    # Requests

    def _refused(self) -> None:
        for fault in self._faults.values():
            if fault.rule.kind == fault_rules.REFUSE_CONNECTIONS:
                self._met(fault)

    def _met(self, fault: ActiveFault) -> None:
        fault.hits += 1
        self._hit.set()
        self._hit = asyncio.Event()

    def intercept(self, context: RequestContext, request: Message) -> Interception | None:
        """`RequestPipeline.intercept`."""
        if context.client_id == HELPER_CLIENT_ID:
            self._helper_connections.add(context.connection.id)
            return None
        if not self._faults:
            return None
        met = [fault for fault in self._faults.values() if fault.fits(context, request)]
        if not met:
            return None
        for fault in met:
            self._met(fault)
        interception = _interception(context, request, [fault.rule for fault in met])
        if interception.delay_s:
            until_s = self._loop.time() + interception.delay_s
            held = HeldRequest(_words(context, request), context.connection.id, time.time(), until_s)
            for fault in met:
                if fault.rule.kind in (fault_rules.DELAY, fault_rules.HANG):
                    fault.held.append(held)
                    del fault.held[:-HELD_KEPT]
            self._held_until_s[context.connection.id] = max(until_s, self._held_until_s.get(context.connection.id, 0.0))
        return interception


def _words(context: RequestContext, request: Message) -> str:
    host, port = context.connection.peer
    words = [f"{APIS[context.api_key].name} version {context.version}", *details(context, request)]
    return f"{' '.join(words)} from {context.client_id or 'a client without id'} ({host}:{port})"


def _interception(context: RequestContext, request: Message, rules: list[FaultRule]) -> Interception:
    delay_s = sum(rule.delay_s for rule in rules if rule.kind == fault_rules.DELAY)
    fatal = next((rule.kind for rule in rules if rule.kind not in (fault_rules.DELAY, fault_rules.FAIL)), None)
    match fatal:
        case fault_rules.HANG:
            return Interception(delay_s=FOREVER_S, is_handled=False, is_lost=True)
        case fault_rules.DROP:
            return Interception(delay_s=delay_s, is_handled=False, is_lost=True)
        case fault_rules.LOSE_REPLY:
            return Interception(delay_s=delay_s, is_lost=True)
    failures = [
        Failure(rule.topic, rule.partition, KafkaError(rule.error_code, f"a test asked for {error_name(rule.error_code)}"))
        for rule in rules
        if rule.kind == fault_rules.FAIL
    ]
    if not failures:
        return Interception(delay_s=delay_s)
    return fail_parts(context, request, failures, delay_s)


_TOPIC_IDS_SINCE: Final = 13
_OF_SESSIONS: Final = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)
"""Errors of a whole Fetch response. All others go into its partitions, where clients look for them."""


class Failure(NamedTuple):
    """An error for a topic or partition; None means all."""

    topic: str | None
    partition: int | None
    error: KafkaError

    def meets(self, topic: str | None, index: int | None) -> bool:
        return self.topic in (None, topic) and (self.partition is None or index is None or self.partition == index)


def fail_parts(context: RequestContext, request: Message, failures: list[Failure], delay_s: float) -> Interception:
    """How to handle a request that some of `failures` meet."""
    if context.api_key == ApiKey.FETCH:
        return _fail_fetch(context, request, failures, delay_s)
    if context.api_key == ApiKey.METADATA:
        return _fail_metadata(context, request, failures, delay_s)
    fields = SERVED[context.api_key].topics
    whole = next((failure for failure in failures if failure.topic is None), None)
    if whole is not None or fields is None:
        return Interception(delay_s=delay_s, answer=(whole or failures[0]).error)
    module = load_handler(context.api_key)
    assert module is not None, "what is intercepted has a handler"
    taken = [
        (part, failure.error) for failure in failures if (part := take_out(context, request, fields, failure.meets)) is not None
    ]
    if context.api_key == ApiKey.PRODUCE and cast(Any, request).acks == 0:
        # With acks=0 there is no response; a broker reports an error by closing the connection.
        return Interception(delay_s=delay_s, is_handled=not is_empty(request, fields), is_lost=True)
    refusals = [cast(Message, module.refuse(context, part, error)) for part, error in taken]

    def add_refusals(response: Message) -> Message:
        for refusal in refusals:
            add_answers(response, refusal, fields)
        return response

    def refuse(error: KafkaError) -> Message:
        return cast(Message, module.refuse(context, request, error))

    if not is_empty(request, fields):
        return Interception(delay_s=delay_s, rewrite=add_refusals, refuse=refuse)
    first, *refusals = refusals
    return Interception(delay_s=delay_s, answer=add_refusals(first))


# Fetch


def _fail_fetch(context: RequestContext, request: Any, failures: list[Failure], delay_s: float) -> Interception:
    for failure in failures:
        if failure.error.code in _OF_SESSIONS:
            return Interception(delay_s=delay_s, answer=failure.error)
    errors: dict[tuple[Any, int], int] = {}
    for key, name in _fetched(context, request).items():
        met = next((failure for failure in failures if failure.meets(name, key[1])), None)
        if met is not None:
            errors[key] = met.error.code
    if not errors:
        return Interception(delay_s=delay_s)
    request.max_wait_ms = 0  # a response with an error is sent at once

    def put_errors(response: Message) -> Message:
        _put_fetch_errors(context, response, errors)
        return response

    return Interception(delay_s=delay_s, rewrite=put_errors)


def _fetched(context: RequestContext, request: Any) -> dict[tuple[Any, int], str | None]:
    """The partitions that a request fetches: (topic id or name, as its version has it, and index) → topic name."""
    by_id = context.version >= _TOPIC_IDS_SINCE
    fetched = {
        (wanted.topic_id if by_id else wanted.topic, wanted.index): wanted.topic or topic_name(context, wanted.topic_id)
        for wanted in session_partitions(context, request)
    }
    for topic in request.topics:
        name = topic_name(context, topic.topic_id) if by_id else topic.topic
        fetched |= {(topic.topic_id if by_id else topic.topic, each.partition): name for each in topic.partitions}
    return fetched


def _put_fetch_errors(context: RequestContext, response: Any, errors: dict[tuple[Any, int], int]) -> None:
    if response.error_code:
        return
    by_id = context.version >= _TOPIC_IDS_SINCE
    for entry in response.responses:
        topic = entry.topic_id if by_id else entry.topic
        entry.partitions = [data for data in entry.partitions if (topic, data.partition_index) not in errors]
    response.responses = [entry for entry in response.responses if entry.partitions]
    for (topic, index), code in errors.items():
        data = PartitionData(partition_index=index, error_code=code, high_watermark=-1, last_stable_offset=-1)
        data.log_start_offset = -1
        data.aborted_transactions = None
        data.records = b""
        entry = FetchableTopicResponse(topic="" if by_id else topic, topic_id=topic if by_id else ZERO_UUID, partitions=[data])
        response.responses.append(entry)
    for key, wanted in context.services.fetch_sessions.wanted_in(response.session_id).items():
        if key in errors:
            wanted.sent_high_watermark = -1  # after an error the next response has all fields of the partition again


# Metadata


def _fail_metadata(context: RequestContext, request: Any, failures: list[Failure], delay_s: float) -> Interception:
    """Only topics fail: the list of brokers is always in the response, as with a real error of a topic."""
    fields = SERVED[ApiKey.METADATA].topics
    assert fields is not None
    named = [name for name, _ in subjects(context, request)]
    whole = next((failure.error.code for failure in failures if failure.topic is None), None)
    if request.topics:
        of_topics = [failure for failure in failures if failure.partition is None]
        # Removed before the request is handled, so that no topic is created.
        parts = [
            (part, failure.error.code)
            for failure in of_topics
            if (part := take_out(context, request, fields, failure.meets)) is not None
        ]
    else:
        parts = []

    def put_errors(response: Any) -> Message:
        if parts and not request.topics:
            response.topics = []  # in version 0 an empty list requests all topics
        for topic in response.topics:
            _put_topic_errors(topic, failures)
        for part, code in parts:
            for asked in cast(Any, part).topics:
                name = asked.name or topic_name(context, asked.topic_id)
                response.topics.append(MetadataResponseTopic(name=name, topic_id=asked.topic_id, error_code=code))
        if whole is not None and not named:
            response.error_code = whole
        return cast(Message, response)

    return Interception(delay_s=delay_s, rewrite=put_errors)


def _put_topic_errors(topic: Any, failures: list[Failure]) -> None:
    for failure in failures:
        if not failure.meets(topic.name, None):
            continue
        if failure.partition is None:
            topic.error_code, topic.partitions = failure.error.code, []
        for partition in topic.partitions:
            if partition.partition_index == failure.partition:
                partition.error_code, partition.leader_id = failure.error.code, -1
