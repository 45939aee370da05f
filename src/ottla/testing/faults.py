"""Fault injection, the test's side.

    with broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders", times=2) as fault:
        ...
    assert fault.hits == 2

Faults work the same whether the broker runs in the test's process or in a child. They do not affect the broker's own helpers
(`produce`, `await_records` …).
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, TypedDict, Unpack

from ottla.broker.requests.apis import ON_BROKER, SERVED
from ottla.errors.codes import ErrorCode, error_name
from ottla.errors.texts import counted
from ottla.testing import fault_rules
from ottla.testing.arguments import check_kind
from ottla.testing.errors import TimedOut
from ottla.testing.fault_rules import FaultRule
from ottla.wire.apis import APIS, ApiKey

__tracebackhide__ = True  # for pytest: a test that fails shows the line that called us

EVERY_API = "*"


class Tell(Protocol):
    """Sends a command to the node and returns its result."""

    def __call__(self, name: str, /, **values: Any) -> Any: ...


class Fault:
    """One fault, active until it is removed or its broker stops. As a context manager it removes itself."""

    def __init__(self, tell: Tell, fault_id: int, rule: FaultRule, what: str) -> None:
        self._tell = tell
        self._what = what
        self.id = fault_id
        self.rule = rule

    def __repr__(self) -> str:
        return f"<Fault {self._what}>"

    @property
    def hits(self) -> int:
        """How many requests (or connections) it has met so far."""
        hits: int = self._tell("hits", id=self.id)
        return hits

    def await_hits(self, count: int = 1, timeout: float = 10.0) -> int:
        """Wait until it has met `count` requests; returns how many it has met. `TimedOut` if that takes too long."""
        return self.check_hits(self._tell("await_hits", id=self.id, count=count, timeout_s=timeout), count, timeout)

    def check_hits(self, hits: int, count: int, timeout: float) -> int:
        """`hits`, if they are at least `count`; else `TimedOut` with what the fault is."""
        if hits < count:
            raise TimedOut(
                f"{self._what} was met {counted(hits, 'time')} in {timeout:g} s, not {counted(count, 'time')}. Is the client "
                "connected to this broker, and does it send such requests?"
            )
        return hits

    def remove(self) -> None:
        """Remove the fault. Requests that are already delayed stay delayed. Removing twice is harmless."""
        self._tell("remove", id=self.id)

    def __enter__(self) -> Fault:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.remove()


class Only(TypedDict, total=False):
    """What a fault is limited to; None or a missing key is no limit."""

    topic: str | None
    partition: int | None
    """One partition of `topic`."""
    client_id: str | None
    """The requests of this client."""
    times: int | None
    """How many requests it meets: the first that fit."""


class Faults:
    """Adds faults to a broker. Each call returns a `Fault`, which counts its hits and can be removed.

    `api` is a name such as "Produce", an `ApiKey`, or "*" for all. A fault can be limited to a `topic`, to one `partition` of
    it, to the requests of a `client_id`, and to the first requests that fit (`times`).
    """

    def __init__(self, tell: Tell, greet: Callable[[], object]) -> None:
        self._tell = tell
        self._greet = greet
        self._next_id = 1

    def fail(self, api: str | int, error: str | int, **only: Unpack[Only]) -> Fault:
        """Refuse requests with an error, given by name ("NOT_LEADER_OR_FOLLOWER") or code. A refused request has no effect.

        With a topic or partition only that part fails; the rest of the request is handled.
        """
        return self._add(FaultRule(fault_rules.FAIL, api_key(api), error_code=error_code(error), **only))

    def delay(self, api: str | int, seconds: float, **only: Unpack[Only]) -> Fault:
        """Wait before handling requests; those behind them on the same connection wait too."""
        check_kind("seconds", seconds, (int, float), "a number of seconds")
        if not seconds >= 0:
            raise ValueError(f"seconds={seconds}: a delay must be 0 or more")
        return self._add(FaultRule(fault_rules.DELAY, api_key(api), delay_s=seconds, **only))

    def drop(self, api: str | int, **only: Unpack[Only]) -> Fault:
        """Close the connection instead of handling a request."""
        return self._add(FaultRule(fault_rules.DROP, api_key(api), **only))

    def lose_reply(self, api: str | int, **only: Unpack[Only]) -> Fault:
        """Handle a request, then close the connection instead of replying: the client cannot know that it was handled."""
        return self._add(FaultRule(fault_rules.LOSE_REPLY, api_key(api), **only))

    def hang(self, api: str | int, **only: Unpack[Only]) -> Fault:
        """Neither handle nor answer a request; its connection stays open."""
        return self._add(FaultRule(fault_rules.HANG, api_key(api), **only))

    def refuse_connections(self) -> Fault:
        """Close all connections of clients, and new ones as soon as they are made, until the fault is removed."""
        # The helpers' own connection must stay open, so it must exist and be known before the others are closed.
        self._tell("watch")
        self._greet()
        return self._add(FaultRule(fault_rules.REFUSE_CONNECTIONS))

    def clear(self) -> None:
        """Remove all faults."""
        self._tell("clear")

    def _add(self, rule: FaultRule) -> Fault:
        check_kind("topic", rule.topic, (str, type(None)), "a topic's name")
        check_kind("partition", rule.partition, (int, type(None)), "a partition's number")
        check_kind("times", rule.times, (int, type(None)), "a number of requests")
        _check_subject(rule.api_key, rule.topic, rule.partition)
        if rule.times is not None and rule.times < 1:
            raise ValueError(f"times={rule.times}: a fault must meet at least one request; leave times=… out for all requests")
        fault_id, self._next_id = self._next_id, self._next_id + 1
        self._tell("add", id=fault_id, rule=list(rule))
        return Fault(self._tell, fault_id, rule, describe(rule))


def api_key(api: str | int) -> int | None:
    """The key of an API by its name, ignoring case and separators; None for "*". `ValueError` if it is not served."""
    if isinstance(api, str):
        if api == EVERY_API:
            return None
        found = {_plain(APIS[key].name): key for key in ON_BROKER}.get(_plain(api))
        if found is None:
            raise ValueError(f"this broker serves no API {api!r}{_suggestion(api, [APIS[key].name for key in ON_BROKER])}")
        return int(found)
    if api not in ON_BROKER:
        raise ValueError(f"this broker does not serve the API {APIS[api].name if api in APIS else api}")
    return int(api)


def error_code(error: str | int) -> int:
    """An error code, given by name or number. `ValueError` if Kafka has no such error."""
    if isinstance(error, str):
        name = error.upper()
        if name not in ErrorCode.__members__:
            raise ValueError(f"Kafka has no error {error!r}{_suggestion(name, list(ErrorCode.__members__))}")
        error = ErrorCode[name]
    elif error not in ErrorCode.__members__.values():
        raise ValueError(f"Kafka has no error with the code {error}")
    if error == ErrorCode.NONE:
        raise ValueError("NONE is no error: choose one to fail with")
    return int(error)


def describe(rule: FaultRule) -> str:
    """A fault in words, as the test added it."""
    words = [rule.kind]
    if rule.kind != fault_rules.REFUSE_CONNECTIONS:
        words.append("of every API" if rule.api_key is None else f"of {APIS[rule.api_key].name}")
    if rule.error_code:
        words.append(f"with {error_name(rule.error_code)}")
    if rule.delay_s:
        words.append(f"by {rule.delay_s:g} s")
    if rule.topic is not None:
        words.append(f"for {rule.topic}" if rule.partition is None else f"for {rule.topic}-{rule.partition}")
    if rule.client_id is not None:
        words.append(f"from client {rule.client_id!r}")
    return " ".join(words)


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _suggestion(name: str, known: list[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=3, cutoff=0.5)
    return f": did you mean {' or '.join(close)}?" if close else f"; there are {', '.join(known)}"


_TOPICS_WITH_PARTITIONS_IN_ANSWERS = (ApiKey.METADATA,)
"""APIs whose requests have topics only, and whose responses have their partitions."""


def _check_subject(api_key: int | None, topic: str | None, partition: int | None) -> None:
    """`ValueError` if requests of the API cannot name a topic or partition."""
    __tracebackhide__ = True  # for pytest: a test that fails shows the line that called us
    if topic is None:
        if partition is not None:
            raise ValueError(f"partition {partition} of which topic? Give topic=… too")
        return
    if api_key is None:
        return
    name, fields = APIS[api_key].name, SERVED[api_key].topics
    if fields is None:
        known = ", ".join(APIS[key].name for key, api in SERVED.items() if api.topics is not None)
        raise ValueError(f"{name} requests name no topics. Leave topic=… out, or choose one of {known}")
    if partition is not None and fields.partitions is None and api_key not in _TOPICS_WITH_PARTITIONS_IN_ANSWERS:
        raise ValueError(f"{name} requests are about whole topics: leave partition={partition} out")
