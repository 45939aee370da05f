"""Client quotas: the rates and throttle times that were observed on Apache Kafka 4.3.0, and which limit holds for whom."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.requests.apis import Quota
from ottla.broker.requests.context import ConnectionInfo
from ottla.broker.requests.quotas import COUNTERS_MAX, ClientQuotas, Rate, Windows
from ottla.broker.requests.throttle import Usage
from ottla.errors import KafkaError
from ottla.ids import Principal
from ottla.metadata.image.security import QuotaKey, quota_key
from ottla.wire.messages.metadata_records import ClientQuotaRecord, EntityData


def quotas_of(*limits: tuple[Mapping[str, str | None], str, float]) -> ClientQuotas:
    """Quotas with these limits: (entity, key, value)."""
    records: dict[QuotaKey, ClientQuotaRecord] = {}
    for entity, key, value in limits:
        parts = [EntityData(entity_type=type_, entity_name=name) for type_, name in entity.items()]
        record = ClientQuotaRecord(entity=parts, key=key, value=value)
        records[quota_key(record)] = record
    quotas = ClientQuotas()
    quotas.apply(records)
    return quotas


def used(
    now_s: float,
    quota: str = Quota.REQUEST,
    *,
    user: str = "alice",
    client_id: str | None = "shop",
    request_bytes: int = 0,
    reply_bytes: int = 0,
    time_s: float = 0.0,
    is_answered: bool = True,
) -> Usage:
    connection = ConnectionInfo(1, "L", ("10.1.2.3", 5000), False, Principal("User", user))
    return Usage(connection, client_id, quota, request_bytes, reply_bytes, time_s, now_s, is_answered)


def test_throttle_times_grow_as_observed() -> None:
    """10,000 B/s, and requests of 50 kB one after the other: 0, 19, 5008, 10009 ms on Apache."""
    quotas = quotas_of(({"user": "alice"}, "producer_byte_rate", 10_000))
    times = [quotas.delay_ms(used(100 + at / 1000, Quota.PRODUCE, request_bytes=50_070)) for at in (0, 5, 9, 12)]
    assert times == [0, 9, 5012, 10016]


def test_throttle_time_has_no_upper_limit() -> None:
    quotas = quotas_of(({"user": "alice"}, "producer_byte_rate", 100))
    assert quotas.delay_ms(used(0, Quota.PRODUCE, request_bytes=20_107)) == 191_070


@given(
    st.lists(st.tuples(st.integers(0, 4000), st.integers(1, 100_000)), min_size=1, max_size=40),
    st.integers(2, 12),
    st.sampled_from([0.5, 1.0, 2.0]),
)
def test_rate_is_that_of_the_samples(steps: list[tuple[int, int]], number: int, size_s: float) -> None:
    """Compared with Kafka's definition, computed from all that was ever recorded."""
    rate, now_s, limit = Rate(Windows(number, size_s)), 50.0, 777.0
    samples: list[list[float]] = []
    for pause_ms, value in steps:
        now_s += pause_ms / 1000
        rate.add(value, now_s)
        if not samples or now_s - samples[-1][0] >= size_s:
            samples.append([now_s, now_s, 0])
        samples[-1][1] = now_s
        samples[-1][2] += value
        alive = [sample for sample in samples if now_s - sample[1] < number * size_s]
        elapsed_s = now_s - alive[0][0]
        elapsed_s += max(0, number - 1 - int(elapsed_s / size_s)) * size_s
        expected_s = sum(sample[2] for sample in alive) / limit - elapsed_s
        assert rate.delay_s(limit, now_s) == pytest.approx(expected_s)


@given(st.integers(10_000, 1_000_000), st.integers(100, 5_000))
def test_client_that_waits_as_told_is_held_to_its_quota(limit: int, size_bytes: int) -> None:
    quotas = quotas_of(({}, "producer_byte_rate", limit), ({"client-id": None}, "producer_byte_rate", limit))
    now_s = sent = 0.0
    while now_s < 60:
        sent += size_bytes
        delay_ms = quotas.delay_ms(used(now_s, Quota.PRODUCE, request_bytes=size_bytes))
        now_s += delay_ms / 1000 + 0.001
    burst = 10 * limit + size_bytes  # the windows before the first request count as unused
    assert sent <= (limit * now_s + burst) * 1.05
    if size_bytes * 1000 > limit:  # else a millisecond per request is slower than the quota
        assert sent >= limit * 60 * 0.95


LEVELS = [
    {"user": "alice", "client-id": "shop"},
    {"user": "alice", "client-id": None},
    {"user": "alice"},
    {"user": None, "client-id": "shop"},
    {"user": None, "client-id": None},
    {"user": None},
    {"client-id": "shop"},
    {"client-id": None},
]


def test_first_level_with_a_limit_holds() -> None:
    for at in range(len(LEVELS)):
        quotas = quotas_of(*((entity, "consumer_byte_rate", 1000 + n) for n, entity in enumerate(LEVELS) if n >= at))
        assert quotas.fetch_bytes_max("alice", "shop") == (1000 + at) * 10
    assert quotas_of((LEVELS[0], "consumer_byte_rate", 5)).fetch_bytes_max("bob", "shop") == 2**31 - 1


@pytest.mark.parametrize(
    ("entity", "shared_by"),
    list(zip(LEVELS, ["both", "both", "user", "both", "both", "user", "client", "client"], strict=True)),
)
def test_counter_is_shared_by_the_entity(entity: dict[str, str | None], shared_by: str) -> None:
    """Which other client is slowed down after alice's shop has used up the limit. Limits by name hold for nobody else."""
    for user, client_id in product(["alice", "bob"], ["shop", "till"]):
        quotas = quotas_of((entity, "producer_byte_rate", 10))
        assert quotas.delay_ms(used(0, Quota.PRODUCE, request_bytes=10_000)) > 0
        same_user, same_client = user == "alice", client_id == "shop"
        shares = {"both": same_user and same_client, "user": same_user, "client": same_client}[shared_by]
        delay_ms = quotas.delay_ms(used(0, Quota.PRODUCE, user=user, client_id=client_id, request_bytes=1))
        assert (delay_ms > 0) == shares


def test_fetch_above_its_quota_takes_its_bytes_back() -> None:
    """20,000 B/s and fetches of 60 kB, tried again every 100 ms: three are served, then none until samples leave the window."""
    quotas = quotas_of(({"user": "alice"}, "consumer_byte_rate", 20_000))
    served = [tenth for tenth in range(130) if quotas.delay_ms(used(tenth / 10, Quota.FETCH, reply_bytes=60_000)) == 0]
    assert served[:3] == [0, 1, 2]
    assert 110 <= served[3] <= 120, "what was used in the first window has left"
    assert quotas_of(({"user": "bob"}, "consumer_byte_rate", 1)).delay_ms(used(0, Quota.FETCH, reply_bytes=9)) == 0


def test_fetch_may_always_read_what_can_pass() -> None:
    quotas = quotas_of(({"user": "alice"}, "consumer_byte_rate", 500))
    assert quotas.delay_ms(used(0, Quota.FETCH, reply_bytes=quotas.fetch_bytes_max("alice", None))) == 0


def test_request_time_is_throttled_for_at_most_a_window() -> None:
    quotas = quotas_of(({"user": "alice"}, "request_percentage", 1.0))
    assert quotas.delay_ms(used(0, time_s=0.05)) == 0
    assert quotas.delay_ms(used(0, time_s=0.051)) == 100
    assert quotas.delay_ms(used(0, time_s=5)) == 1000
    assert quotas.delay_ms(used(0, Quota.PRODUCE, is_answered=False)) == 0, "acks=0 counts for bandwidth alone"


def test_longer_of_two_times_counts() -> None:
    quotas = quotas_of(({"user": "alice"}, "request_percentage", 1.0), ({"client-id": None}, "producer_byte_rate", 100))
    assert quotas.delay_ms(used(0, Quota.PRODUCE, request_bytes=10_000, time_s=5)) == 90_000
    assert quotas.delay_ms(used(20, Quota.PRODUCE, request_bytes=1_010, time_s=5)) == 1000


def test_flood_of_client_ids_is_bounded_and_silent_counters_go() -> None:
    quotas = quotas_of(({"client-id": None}, "producer_byte_rate", 100))
    for number in range(3 * COUNTERS_MAX):
        quotas.delay_ms(used(0, Quota.PRODUCE, client_id=f"client-{number}", request_bytes=10))
    assert sum(map(len, quotas.counters)) <= 2 * COUNTERS_MAX
    for now_s in (15, 30):
        quotas.delay_ms(used(now_s, Quota.PRODUCE, client_id="late", request_bytes=10))
    assert sum(map(len, quotas.counters)) == 1


def test_counter_in_use_is_not_dropped() -> None:
    quotas = quotas_of(({"client-id": None}, "producer_byte_rate", 100))
    delays = [quotas.delay_ms(used(now_s, Quota.PRODUCE, request_bytes=200)) for now_s in range(40)]
    assert all(delay > 0 for delay in delays[10:])


def test_mutations_are_paid_from_a_bucket() -> None:
    """Rate 1, so a bucket of 11: a topic of 30 partitions passes, and the next request is told 18968 ms."""
    quotas = quotas_of(({"user": "alice"}, "controller_mutation_rate", 1))
    first = quotas.mutations_of("alice", None, True, 0)
    assert first is not None
    first.pay(30)
    assert first.throttle_ms == 0
    second = quotas.mutations_of("alice", "other", True, 0.032)
    assert second is not None
    with pytest.raises(KafkaError, match="ask again in 18968 ms"):
        second.pay(1)
    assert second.throttle_ms == 18_968
    old = quotas.mutations_of("alice", None, False, 0.032)
    assert old is not None
    old.pay(1)
    assert old.throttle_ms == 19_968
    assert quotas.mutations_of("bob", None, True, 0) is None


def test_mutations_decided_again_are_paid_once() -> None:
    quotas = quotas_of(({"user": "alice"}, "controller_mutation_rate", 1))
    for _ in range(3):
        mutations = quotas.mutations_of("alice", None, True, 0)
        assert mutations is not None
        for _ in range(5):
            mutations.begin()
            mutations.pay(3)


def test_connections_of_an_address() -> None:
    """Rate 1: ten in a burst, then one per second; what is refused does not count."""
    quotas = quotas_of(({"ip": None}, "connection_creation_rate", 1), ({"ip": "10.0.0.1"}, "connection_creation_rate", 100))
    assert [quotas.connection_delay_s("10.0.0.9", 0) for _ in range(10)] == [0.0] * 10
    assert [quotas.connection_delay_s("10.0.0.9", 0) for _ in range(50)] == [1.0] * 50
    assert quotas.connection_delay_s("10.0.0.8", 0) == 0
    assert quotas.connection_delay_s("10.0.0.1", 0) == 0
    assert not quotas.limits_clients
    assert quotas.limits_addresses
