"""Client quotas: which limit holds for a client, what has been used of it, and for how long the client is slowed down. Pure.

A limit is for a user, a client id or both, each by name or by default. Of each kind of quota the first limit in `_LEVELS` that
is set holds. All connections of the entity that the level names share one counter: a limit for a user counts per user, also if
it is the one for all other users.

Bandwidth and time are rates as Kafka measures them: what was used in the last `quota.window.num` samples, over at least
`num - 1` whole windows and the part of the running one. The request that goes beyond the limit is served, and its client is
slowed down until the rate would be the limit. Changes of the metadata are paid from a bucket of tokens
(`metadata/controller/mutation_quota.py`).

A counter that is silent for all of its windows is the same as a new one. So counters are kept in two generations, and the older
one is dropped when the younger is old or large: a flood of client ids holds `COUNTERS_MAX` of them twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from ottla.broker.requests.apis import Quota
from ottla.metadata.controller.mutation_quota import Mutations, TokenBucket

if TYPE_CHECKING:
    from ottla.broker.requests.throttle import Usage
    from ottla.metadata.image.security import QuotaKey
    from ottla.wire.messages.metadata_records import ClientQuotaRecord

COUNTERS_MAX: Final = 20_000
BUCKET_SILENCE_S: Final = 3600.0
"""As in Kafka, a client in debt for longer than this has its changes for free."""

_DEFAULT: Final = None
_ABSENT: Final = ""
"""In place of a name, which is never empty."""
_NAME: Final = "name"
_LEVELS: Final[tuple[tuple[str | None, str | None], ...]] = (
    (_NAME, _NAME),
    (_NAME, _DEFAULT),
    (_NAME, _ABSENT),
    (_DEFAULT, _NAME),
    (_DEFAULT, _DEFAULT),
    (_DEFAULT, _ABSENT),
    (_ABSENT, _NAME),
    (_ABSENT, _DEFAULT),
)
"""(user, client id) of a limit, in the order in which Kafka looks them up."""

UNLIMITED: Final = float("inf")
_INT_MAX: Final = 2_147_483_647
_PRODUCE: Final = "producer_byte_rate"
_FETCH: Final = "consumer_byte_rate"
_REQUEST: Final = "request_percentage"
_MUTATION: Final = "controller_mutation_rate"
_CONNECTION: Final = "connection_creation_rate"

Entity = tuple[str | None, str | None]
C = TypeVar("C")


class Windows(NamedTuple):
    """Over how many windows of how many seconds a rate is measured."""

    number: int = 11
    size_s: float = 1.0


class Rate:
    """What one entity has used in the last windows."""

    __slots__ = ("_samples", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: list[list[float]] = []
        """When each sample began, when it was last added to, and its sum; the oldest first."""

    def add(self, value: float, now_s: float) -> None:
        samples = self._samples
        if samples and now_s - samples[-1][0] < self._windows.size_s:
            samples[-1][1] = now_s
            samples[-1][2] += value
        else:
            samples.append([now_s, now_s, value])

    def delay_s(self, limit: float, now_s: float) -> float:
        """How long nothing may be used until the rate is `limit`; not positive if it is not above."""
        count, size_s = self._windows
        samples = self._samples
        while samples and now_s - samples[0][1] >= count * size_s:
            del samples[0]
        if not samples:
            return 0.0
        elapsed_s = now_s - samples[0][0]
        full = int(elapsed_s / size_s)
        if full < count - 1:
            elapsed_s += (count - 1 - full) * size_s
        rate = sum(sample[2] for sample in samples) / max(elapsed_s, 0.001)
        return (rate - limit) / limit * elapsed_s


class Counters(Generic[C]):
    """The counters of one kind of quota by key, in two generations."""

    __slots__ = ("_make", "_old", "_turn_s", "_turned_s", "_young")

    def __init__(self, make: Callable[[], C], turn_s: float) -> None:
        """A counter that was silent for `turn_s` may be dropped."""
        self._make = make
        self._turn_s = turn_s
        self._turned_s = 0.0
        self._young: dict[Entity, C] = {}
        self._old: dict[Entity, C] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def of(self, key: Entity, now_s: float) -> C:
        if now_s - self._turned_s >= self._turn_s or len(self._young) >= COUNTERS_MAX:
            self._old = self._young if now_s - self._turned_s < 2 * self._turn_s else {}
            self._young, self._turned_s = {}, now_s
        found = self._young.get(key)
        if found is None:
            found = self._old.pop(key, None)
            self._young[key] = found = self._make() if found is None else found
        return found


class Limits:
    """The limits of one kind of quota."""

    __slots__ = ("_levels", "by_entity")

    def __init__(self) -> None:
        self.by_entity: dict[Entity, float] = {}
        self._levels: tuple[tuple[str | None, str | None], ...] = ()

    def replace(self, by_entity: dict[Entity, float]) -> None:
        self.by_entity = by_entity
        present = {(_kind_of(user), _kind_of(client_id)) for user, client_id in by_entity}
        self._levels = tuple(level for level in _LEVELS if level in present)

    def find(self, user: str, client_id: str) -> tuple[Entity, float] | None:
        """The key of the counter and the limit of a client; None: it has no limit."""
        for of_user, of_client in self._levels:
            limit = self.by_entity.get((user if of_user is _NAME else of_user, client_id if of_client is _NAME else of_client))
            if limit is not None:
                return (_ABSENT if of_user is _ABSENT else user, _ABSENT if of_client is _ABSENT else client_id), limit
        return None


class Meter:
    """One kind of quota on a rate: its limits and counters."""

    __slots__ = ("counters", "limits", "windows")

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.limits = Limits()
        self.counters: Counters[Rate] = Counters(lambda: Rate(windows), (windows.number + 1) * windows.size_s)

    def find(self, user: str, client_id: str, now_s: float) -> tuple[Rate, float] | None:
        found = self.limits.find(user, client_id)
        return None if found is None else (self.counters.of(found[0], now_s), found[1])

    def delay_ms(self, user: str, client_id: str, value: float, now_s: float) -> int:
        """Count what a client has used; for how long it is slowed down."""
        found = self.find(user, client_id, now_s)
        if found is None:
            return 0
        rate, limit = found
        rate.add(value, now_s)
        return max(0, round(rate.delay_s(limit, now_s) * 1000))


class ClientQuotas:
    """The quotas of one node. A `Throttle`: the pipeline asks it if any limit is set for users or client ids."""

    def __init__(self, windows: Windows | None = None, controller_windows: Windows | None = None) -> None:
        windows = windows or Windows()
        self._controller_windows = controller_windows or Windows()
        self._windows = windows
        self._produce, self._fetch, self._request = Meter(windows), Meter(windows), Meter(windows)
        self._mutations = Limits()
        self._buckets: Counters[TokenBucket] = Counters(TokenBucket, BUCKET_SILENCE_S)
        self._addresses = Meter(windows)

    @property
    def limits_clients(self) -> bool:
        """Whether any limit is set for users or client ids."""
        rates = (self._produce, self._fetch, self._request)
        return bool(self._mutations.by_entity) or any(meter.limits.by_entity for meter in rates)

    @property
    def limits_addresses(self) -> bool:
        """Whether any limit is set on the connections of an address."""
        return bool(self._addresses.limits.by_entity)

    def apply(self, quotas: Mapping[QuotaKey, ClientQuotaRecord]) -> None:
        """Take the limits from the metadata. What has been counted stays."""
        kinds: dict[str, dict[Entity, float]] = {_PRODUCE: {}, _FETCH: {}, _REQUEST: {}, _MUTATION: {}, _CONNECTION: {}}
        for (entity, kind), record in quotas.items():
            parts = dict(entity)
            if kind not in kinds:
                continue
            if kind == _CONNECTION:
                kinds[kind][_ABSENT, parts.get("ip", _ABSENT)] = record.value
            else:
                kinds[kind][parts.get("user", _ABSENT), parts.get("client-id", _ABSENT)] = record.value
        for name, meter in ((_PRODUCE, self._produce), (_FETCH, self._fetch), (_REQUEST, self._request)):
            meter.limits.replace(kinds[name])
        self._mutations.replace(kinds[_MUTATION])
        self._addresses.limits.replace(kinds[_CONNECTION])

    def delay_ms(self, usage: Usage) -> int:
        """Count what a request has used; for how long its connection is muted. Of a Fetch above it, no records are sent."""
        user, client_id, now_s = usage.connection.principal.name, usage.client_id or _ABSENT, usage.now_s
        delay_ms = 0
        if usage.is_answered:
            percent = usage.time_s * 100
            window_ms = round(self._windows.size_s * 1000)
            delay_ms = min(self._request.delay_ms(user, client_id, percent, now_s), window_ms)
        if usage.quota == Quota.PRODUCE:
            return max(delay_ms, self._produce.delay_ms(user, client_id, usage.request_bytes, now_s))
        if usage.quota == Quota.FETCH and (found := self._fetch.find(user, client_id, now_s)) is not None:
            rate, limit = found
            rate.add(usage.reply_bytes, now_s)
            delay_ms = max(delay_ms, round(rate.delay_s(limit, now_s) * 1000))
            if delay_ms:
                rate.add(-usage.reply_bytes, now_s)
        return delay_ms

    def fetch_bytes_max(self, user: str, client_id: str | None) -> int:
        """How much one Fetch may read, so that it can pass at all."""
        found = self._fetch.limits.find(user, client_id or _ABSENT)
        if found is None:
            return _INT_MAX
        return int(min(found[1] * (self._windows.number - 1) * self._windows.size_s, _INT_MAX))

    def mutations_of(self, user: str, client_id: str | None, is_strict: bool, now_s: float) -> Mutations | None:
        """What pays for a request's changes of the metadata; None: they are free."""
        found = self._mutations.find(user, client_id or _ABSENT)
        if found is None:
            return None
        count, size_s = self._controller_windows
        key, rate = found
        return Mutations(self._buckets.of(key, now_s), rate, rate * count * size_s, is_strict, now_s)

    def connection_delay_s(self, host: str, now_s: float) -> float:
        """Count a new connection from an address; above 0: it is refused after this time, and does not count."""
        found = self._addresses.limits.find(_ABSENT, host)
        if found is None:
            return 0.0
        rate = self._addresses.counters.of((_ABSENT, host), now_s)
        rate.add(1, now_s)
        delay_s = min(rate.delay_s(found[1], now_s), self._windows.size_s)
        if delay_s <= 0:
            return 0.0
        rate.add(-1, now_s)
        return delay_s

    @property
    def counters(self) -> Iterable[Counters[Rate]]:
        """All counters of rates."""
        return tuple(meter.counters for meter in (self._produce, self._fetch, self._request, self._addresses))


def _kind_of(name: str | None) -> str | None:
    return _NAME if name else name
