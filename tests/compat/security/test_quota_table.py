"""The rules of quotas row by row, the same for Ottla and for Apache Kafka: which limit holds for whom, who shares it, in which
responses throttle times are, and what connections beyond a limit get. Users log in with unsecured tokens: any name will do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from tests.support.cases.access_rows import BROKER, Ask, request_of
from tests.support.cases.access_rows import ROWS as ACCESS_ROWS
from tests.support.logs.batches import make_batch
from tests.support.peers.fetching import fetch_of, part
from tests.support.peers.raw_client import RawClient
from tests.support.peers.sasl_login import authenticate, bearer, shake
from tests.support.peers.topics import await_true, make_topic
from tests.support.servers.kafka_server import KafkaServer, free_ports, ports_of
from tests.support.servers.ottla_server import StartServer

from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.wire.api_table import ApiKey
from ottla.wire.apis import APIS
from ottla.wire.base import Message
from ottla.wire.binding import binding_of
from ottla.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

WINDOWS = 4
BURST_S = WINDOWS - 1
"""What is used at once may be a limit times this; the rest is waited for."""
LISTENERS = ("PLAINTEXT", "TOKENS", "CONTROLLER")
PRODUCE, FETCH = "producer_byte_rate", "consumer_byte_rate"
REQUEST, MUTATION, CONNECTION = "request_percentage", "controller_mutation_rate", "connection_creation_rate"
RECORD_BYTES = 100_000
Entity = Mapping[str, str | None]
_numbers = count(1)


def properties() -> dict[str, object]:
    ports = dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True))
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    return {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TOKENS:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports['CONTROLLER']}",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.name.tokens.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.tokens.oauthbearer.sasl.jaas.config": f'{module} unsecuredLoginStringClaim_sub="node";',
        "quota.window.num": WINDOWS,
        "controller.quota.window.num": WINDOWS,
        "num.partitions": 1,
        "delegation.token.secret.key": "a key for tests",
    }


@pytest.fixture(scope="module")
def server(start_server: StartServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    with start_server(properties(), data_dir=tmp_path_factory.mktemp("quotas")) as server:
        make_topic(server.bootstrap, "used")
        with RawClient.to(server.bootstrap) as client:
            assert produce(client, RECORD_BYTES) == 0
        yield server


def log_in(server: KafkaServer, user: str, client_id: str) -> RawClient:
    client = RawClient(ports_of(server.properties)["TOKENS"], client_id=client_id)
    assert shake(client, "OAUTHBEARER").error_code == 0
    assert authenticate(client, bearer({"sub": user, "exp": time.time() + 3600})).error_code == 0
    return client


# Setting quotas


def entry_of(entity: Entity, key: str, value: float | None) -> AlterClientQuotasRequestEntryData:
    parts = [AlterClientQuotasRequestEntityData(entity_type=type_, entity_name=name) for type_, name in entity.items()]
    return AlterClientQuotasRequestEntryData(entity=parts, ops=[OpData(key=key, value=value or 0.0, remove=value is None)])


def set_quotas(server: KafkaServer, key: str, limits: Sequence[tuple[Entity, float | None]]) -> None:
    """Set (None: remove) quotas; returns when the broker knows them."""
    everything = DescribeClientQuotasRequest(components=[], strict=False)

    def known() -> dict[tuple[tuple[str, str | None], ...], float]:
        entries = client.request(everything, 1).entries
        return {
            tuple(sorted((each.entity_type, each.entity_name) for each in entry.entity)): value.value
            for entry in entries
            for value in entry.values
            if value.key == key
        }

    def are_known() -> bool:
        found = known()
        return all(found.get(tuple(sorted(entity.items()))) == value for entity, value in limits)

    with RawClient.to(server.bootstrap, client_id="boss") as client:
        answer = client.request(AlterClientQuotasRequest(entries=[entry_of(each, key, value) for each, value in limits]), 1)
        assert [entry.error_code for entry in answer.entries] == [0] * len(limits), answer
        await_true(are_known, "the broker to know the quotas")


# What uses a quota up; each returns the throttle time in ms


def produce(client: RawClient, size_bytes: int) -> int:
    records = bytes(make_batch(b"x" * size_bytes))
    data = TopicProduceData(name="used", partition_data=[PartitionProduceData(index=0, records=records)])
    answer = client.request(ProduceRequest(acks=1, timeout_ms=10_000, topic_data=[data]), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0
    return int(answer.throttle_time_ms)


def fetch(client: RawClient) -> int:
    return int(client.request(fetch_of("used", part(0, 0, 10_000_000), max_wait_ms=0), 12).throttle_time_ms)


def ask(client: RawClient) -> int:
    return int(client.request(MetadataRequest(topics=[]), 9).throttle_time_ms)


def change(client: RawClient, partitions: int) -> int:
    """Changes of the metadata that are only validated count as well."""
    topic = CreatableTopic(name=f"never-{next(_numbers)}", num_partitions=partitions, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=9000, validate_only=True)
    return int(client.request(request, 7).throttle_time_ms)


# Which limit holds

LEVELS: list[tuple[str | None, str | None]] = [
    ("name", "name"),
    ("name", None),
    ("name", ""),
    (None, "name"),
    (None, None),
    (None, ""),
    ("", "name"),
    ("", None),
]
"""(user, client id) of a limit, the one that holds first: `name` is the own, None the default, `""` none."""


def entity_of(level: tuple[str | None, str | None], user: str, client_id: str) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for type_, how, name in (("user", level[0], user), ("client-id", level[1], client_id)):
        if how != "":
            found[type_] = name if how else None
    return found


def level_name(level: tuple[str | None, str | None]) -> str:
    return "-".join({"name": "own", None: "default", "": "any"}[each] for each in level)


def limits_below(at: int, user: str, client_id: str, values: Sequence[float]) -> list[tuple[Entity, float | None]]:
    """Limits at level `at` and all that hold only after it."""
    return [(entity_of(LEVELS[n], user, client_id), values[n]) for n in range(at, len(LEVELS))]


@pytest.mark.parametrize("at", range(len(LEVELS)), ids=lambda at: level_name(LEVELS[at]))
@pytest.mark.parametrize("key", [PRODUCE, FETCH, MUTATION])
def test_first_level_with_a_limit_holds(server: KafkaServer, key: str, at: int) -> None:
    """Each level has its own limit: the throttle time tells which one held."""
    user, client_id = f"user-{next(_numbers)}", f"client-{next(_numbers)}"
    per_s = {PRODUCE: 1000.0, FETCH: 1000.0, MUTATION: 10.0}[key]
    values = [per_s * 2**n for n in range(len(LEVELS))]
    limits = limits_below(at, user, client_id, values)
    set_quotas(server, key, limits)
    try:
        if key == MUTATION:
            used = 8000
            with log_in(server, user, client_id) as client:
                assert change(client, used) == 0
            with log_in(server, user, client_id) as client:
                told_ms, expected_ms = change(client, 1), (used / values[at] - WINDOWS) * 1000
        else:
            with log_in(server, user, client_id) as client:
                told_ms = produce(client, RECORD_BYTES) if key == PRODUCE else fetch(client)
            expected_ms = (RECORD_BYTES / values[at] - BURST_S) * 1000
        assert told_ms == pytest.approx(max(0, expected_ms), rel=0.02, abs=400), f"{values[at]}/s should hold"
    finally:
        set_quotas(server, key, [(entity, None) for entity, _ in limits])


@pytest.mark.parametrize("at", range(len(LEVELS)), ids=lambda at: level_name(LEVELS[at]))
def test_first_level_with_a_limit_on_time_holds(server: KafkaServer, at: int) -> None:
    """How long a request takes is not known: tiny limits throttle, large ones do not."""
    tiny, large = 0.00001, 100_000.0
    for is_held in (True, False):
        user, client_id = f"user-{next(_numbers)}", f"client-{next(_numbers)}"
        values = [tiny if (n == at) == is_held else large for n in range(len(LEVELS))]
        limits = limits_below(at, user, client_id, values)
        set_quotas(server, REQUEST, limits)
        try:
            with log_in(server, user, client_id) as client:
                ask(client)
                times = [ask(client), ask(client)]
            assert all(0 < each <= 1000 for each in times) if is_held else times == [0, 0]
        finally:
            set_quotas(server, REQUEST, [(entity, None) for entity, _ in limits])


SHARED_BY = ["both", "both", "user", "both", "both", "user", "client", "client"]


@pytest.mark.parametrize("at", range(len(LEVELS)), ids=lambda at: level_name(LEVELS[at]))
def test_limit_is_shared_by_the_connections_of_its_entity(server: KafkaServer, at: int) -> None:
    """Whether others are throttled after one client has used a limit up. A limit for all counts for each alone."""
    user, client_id = f"user-{next(_numbers)}", f"client-{next(_numbers)}"
    limits: list[tuple[Entity, float | None]] = [(entity_of(LEVELS[at], user, client_id), 1000.0)]
    set_quotas(server, PRODUCE, limits)
    try:
        with log_in(server, user, client_id) as client:
            assert produce(client, RECORD_BYTES) > 90_000
        for same_user, same_client in ((True, True), (True, False), (False, True), (False, False)):
            one = log_in(server, user if same_user else f"{user}-other", client_id if same_client else f"{client_id}-other")
            with one as other:
                is_throttled = produce(other, 1) > 0
            shares = {"both": same_user and same_client, "user": same_user, "client": same_client}[SHARED_BY[at]]
            assert is_throttled == shares, (same_user, same_client)
    finally:
        set_quotas(server, PRODUCE, [(entity, None) for entity, _ in limits])


# Changes take effect at once


def test_removed_quota_holds_nobody(server: KafkaServer) -> None:
    """New requests are free at once; a connection that was muted before stays muted for the time it was told."""
    entity = {"client-id": f"client-{next(_numbers)}"}
    set_quotas(server, PRODUCE, [(entity, 25_000)])
    with RawClient.to(server.bootstrap, client_id=entity["client-id"]) as muted:
        began_s = time.monotonic()
        told_ms = produce(muted, RECORD_BYTES)
        assert 500 < told_ms < 1500
        set_quotas(server, PRODUCE, [(entity, None)])
        with RawClient.to(server.bootstrap, client_id=entity["client-id"]) as other:
            assert produce(other, RECORD_BYTES) == 0
        assert produce(muted, RECORD_BYTES) == 0
        assert time.monotonic() - began_s >= told_ms / 1000 - 0.05


def test_raised_quota_frees_the_next_request(server: KafkaServer) -> None:
    entity = {"client-id": f"client-{next(_numbers)}"}
    set_quotas(server, PRODUCE, [(entity, 1000)])
    with RawClient.to(server.bootstrap, client_id=entity["client-id"]) as client:
        assert produce(client, RECORD_BYTES) > 90_000
    set_quotas(server, PRODUCE, [(entity, 1_000_000)])
    with RawClient.to(server.bootstrap, client_id=entity["client-id"]) as client:
        assert produce(client, 1) == 0
    set_quotas(server, PRODUCE, [(entity, None)])


def test_requests_sent_while_muted_are_answered_afterwards_in_order(server: KafkaServer) -> None:
    entity = {"client-id": f"client-{next(_numbers)}"}
    set_quotas(server, PRODUCE, [(entity, 25_000)])
    with RawClient.to(server.bootstrap, client_id=entity["client-id"]) as client:
        began_s = time.monotonic()
        told_ms = produce(client, RECORD_BYTES)
        numbers = [client.send(MetadataRequest(topics=[]), 9) for _ in range(5)]
        assert all(client.receive(ApiKey.METADATA, 9, number).brokers for number in numbers)
        assert time.monotonic() - began_s >= told_ms / 1000 - 0.05
    set_quotas(server, PRODUCE, [(entity, None)])


# Codes of AlterClientQuotas and DescribeClientQuotas: also in the sweep of all APIs, `tests/support/sweep/admin_cases.py`

ALTERATIONS: list[tuple[str, list[tuple[str, str | None]], list[tuple[str, float | None]], int]] = [
    ("fractions of time", [("user", "a")], [(REQUEST, 0.5), (MUTATION, 0.25)], 0),
    ("of an IPv6 address", [("ip", "::1")], [(CONNECTION, 5)], 0),
    ("default address", [("ip", None)], [(CONNECTION, 1000)], 0),
    ("same type twice", [("user", "a"), ("user", "b")], [(PRODUCE, 1e9)], 0),
    ("negative", [("user", "a")], [(PRODUCE, -1)], ErrorCode.INVALID_REQUEST),
    ("zero of time", [("user", "a")], [(REQUEST, 0)], ErrorCode.INVALID_REQUEST),
    ("fraction of an address", [("ip", "10.0.0.1")], [(CONNECTION, 1.5)], ErrorCode.INVALID_REQUEST),
    ("too large for an address", [("ip", "10.0.0.1")], [(CONNECTION, 2.0**31)], ErrorCode.INVALID_REQUEST),
    ("key of an address, for both", [("user", "a"), ("client-id", "c")], [(CONNECTION, 1)], ErrorCode.INVALID_REQUEST),
    ("address with a client", [("ip", "10.0.0.1"), ("client-id", "c")], [(CONNECTION, 1)], ErrorCode.INVALID_REQUEST),
    ("set and removed", [("user", "a")], [(PRODUCE, 1e9), (PRODUCE, None)], ErrorCode.INVALID_REQUEST),
    ("one of two is wrong", [("user", "a")], [(PRODUCE, 1e9), ("no.such", 1)], ErrorCode.INVALID_REQUEST),
    ("no key at all", [("user", "a")], [], 0),
    ("empty key", [("user", "a")], [("", 1)], ErrorCode.INVALID_REQUEST),
]


def alteration(
    entity: Sequence[tuple[str, str | None]], ops: Sequence[tuple[str, float | None]]
) -> AlterClientQuotasRequestEntryData:
    parts = [AlterClientQuotasRequestEntityData(entity_type=type_, entity_name=name) for type_, name in entity]
    changes = [OpData(key=key, value=value or 0.0, remove=value is None) for key, value in ops]
    return AlterClientQuotasRequestEntryData(entity=parts, ops=changes)


@pytest.mark.parametrize(("entity", "ops", "code"), [each[1:] for each in ALTERATIONS], ids=[each[0] for each in ALTERATIONS])
@pytest.mark.parametrize("validate_only", [True, False], ids=["validated", "done"])
def test_codes_of_alterations(
    server: KafkaServer,
    entity: list[tuple[str, str | None]],
    ops: list[tuple[str, float | None]],
    code: int,
    validate_only: bool,
) -> None:
    """What is only validated, and what is refused, changes nothing."""
    before = described(server)
    with RawClient.to(server.bootstrap) as client:
        request = AlterClientQuotasRequest(entries=[alteration(entity, ops)], validate_only=validate_only)
        (answer,) = client.request(request, 1).entries
        assert answer.error_code == code, answer.error_message
        assert bool(answer.error_message) == bool(code)
        if code or validate_only or not ops:
            assert described(server) == before
        else:
            await_true(lambda: described(server) != before, "the quota")
            undo = alteration(entity, [(key, None) for key, _ in ops])
            client.request(AlterClientQuotasRequest(entries=[undo]), 1)
            await_true(lambda: described(server) == before, "the quota to be gone")


def described(server: KafkaServer) -> list[str]:
    with RawClient.to(server.bootstrap) as client:
        entries = client.request(DescribeClientQuotasRequest(components=[], strict=False), 1).entries
    return sorted(str(([(part.entity_type, part.entity_name) for part in each.entity], each.values)) for each in entries)


def test_entities_of_a_request_succeed_or_fail_alone(server: KafkaServer) -> None:
    """One that comes twice gets an error, and only what its first entry says."""
    wrong, good, twice = [("group", "alone")], [("user", "alone")], [("user", "twice")]
    entries = [alteration(wrong, [(PRODUCE, 1e9)]), alteration(good, [(PRODUCE, 1e9)])]
    entries += [alteration(twice, [(PRODUCE, 1e9)]), alteration([("user", "a"), *twice], [(FETCH, 1e9)])]
    with RawClient.to(server.bootstrap) as client:
        answer = client.request(AlterClientQuotasRequest(entries=entries), 1)
        found = sorted((each.entity[0].entity_type, each.entity[0].entity_name, each.error_code) for each in answer.entries)
        assert found == [("group", "alone", 42), ("user", "alone", 0), ("user", "twice", 42)]
        await_true(lambda: "twice" in str(described(server)), "the quotas")
        assert not any("twice" in each and FETCH in each for each in described(server))
        undo = [alteration(each, [(PRODUCE, None)]) for each in (good, twice)]
        client.request(AlterClientQuotasRequest(entries=undo), 1)
        await_true(lambda: not any("alone" in each or "twice" in each for each in described(server)), "the quotas to be gone")


SETS: dict[str, list[tuple[str, str | None]]] = {
    "user": [("user", "shown")],
    "both": [("user", "shown"), ("client-id", "shown")],
    "default user": [("user", None)],
    "default client of a user": [("user", "shown"), ("client-id", None)],
    "client": [("client-id", "shown")],
    "ip": [("ip", "10.9.9.9")],
}
FILTERS: list[tuple[list[tuple[str, int, str | None]], bool, set[str]]] = [
    ([("user", 0, "shown")], False, {"user", "both", "default client of a user"}),
    ([("user", 0, "shown")], True, {"user"}),
    ([("user", 1, None)], True, {"default user"}),
    ([("user", 2, None)], True, {"user", "default user"}),
    ([("user", 2, None)], False, {"user", "both", "default user", "default client of a user"}),
    ([("user", 2, None), ("client-id", 2, None)], True, {"both", "default client of a user"}),
    ([("user", 0, "shown"), ("client-id", 1, None)], True, {"default client of a user"}),
    ([("client-id", 2, None)], False, {"client", "both", "default client of a user"}),
    ([("client-id", 0, "shown")], True, {"client"}),
    ([("ip", 2, None)], True, {"ip"}),
    ([("ip", 1, None)], True, set()),
    ([("user", 0, "nobody")], False, set()),
    ([], True, set()),
    ([], False, set(SETS)),
]


def test_filters_of_descriptions(server: KafkaServer) -> None:
    keys = {name: CONNECTION if name == "ip" else REQUEST for name in SETS}
    large = 100_000.0
    with RawClient.to(server.bootstrap) as client:
        client.request(AlterClientQuotasRequest(entries=[alteration(SETS[name], [(keys[name], large)]) for name in SETS]), 1)
        names = {tuple(sorted(entity)): name for name, entity in SETS.items()}

        def found(components: list[tuple[str, int, str | None]], strict: bool) -> set[str]:
            wanted = [ComponentData(entity_type=type_, match_type=how, match=match) for type_, how, match in components]
            entries = client.request(DescribeClientQuotasRequest(components=wanted, strict=strict), 1).entries
            return {names[tuple(sorted((each.entity_type, each.entity_name) for each in entry.entity))] for entry in entries}

        await_true(lambda: found([], False) == set(SETS), "the quotas")
        for components, strict, expected in FILTERS:
            assert found(components, strict) == expected, (components, strict)
        client.request(AlterClientQuotasRequest(entries=[alteration(SETS[name], [(keys[name], None)]) for name in SETS]), 1)


# A second server: one on which many quotas have come and gone looks at fewer levels (seen on Apache Kafka)


class Limited:
    """A server with two listeners for clients, and the settings that limit its connections."""

    def __init__(self, server: KafkaServer) -> None:
        self.server = server
        self._ports = ports_of(server.properties)
        self._node_id = str(server.properties.get("node.id", 1))
        self._boss = RawClient(self._ports["PLAINTEXT"], client_id="boss")

    def set(self, name: str, value: object | None, *, of_one: bool = False) -> None:
        """Change a setting of all brokers, or of the one."""
        config = AlterableConfig(name=name, config_operation=int(value is None), value=None if value is None else str(value))
        resource = AlterConfigsResource(resource_type=4, resource_name=self._node_id if of_one else "", configs=[config])
        (answer,) = self._boss.request(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
        assert answer.error_code == 0, answer.error_message

    def quota(self, address: str, value: float | None) -> None:
        (answer,) = self._boss.request(
            AlterClientQuotasRequest(entries=[entry_of({"ip": address}, CONNECTION, value)]), 1
        ).entries
        assert answer.error_code == 0, answer.error_message

    def connect(self, listener: str = "OTHER", source: str = "127.0.0.1", timeout_s: float = 1.0) -> RawClient:
        return RawClient(self._ports[listener], timeout_s=timeout_s, source=source)


@pytest.fixture(scope="module")
def limited(start_server: StartServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limited]:
    names = ("PLAINTEXT", "OTHER", "THIRD", "CONTROLLER")
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    settings = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in names),
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports['CONTROLLER']}",
        "inter.broker.listener.name": "PLAINTEXT",
        "quota.window.num": WINDOWS,
        "num.network.threads": 1,  # each thread closes its own connections
        "delegation.token.secret.key": "a key for tests",
    }
    with start_server(settings, data_dir=tmp_path_factory.mktemp("limited")) as server:
        yield Limited(server)


# Throttle times in responses

WITHOUT_TIME = frozenset({ApiKey.WRITE_TXN_MARKERS, ApiKey.DESCRIBE_QUORUM})
"""APIs whose responses do not have the field."""
ENDED = frozenset({ApiKey.UNREGISTER_BROKER, ApiKey.UPDATE_FEATURES})
"""APIs that would end or change the server; their rows are left out."""
THROTTLED_ROWS = {row.key: row for row in reversed(ACCESS_ROWS) if BROKER in row.listeners and row.key not in ENDED}


def has_time(key: int, version: int) -> bool:
    fields = binding_of(APIS[key].response_class).schema.root.fields
    return any(each.attribute == "throttle_time_ms" and version in each.versions for each in fields)


@pytest.mark.parametrize("key", [*sorted(THROTTLED_ROWS), ApiKey.API_VERSIONS], ids=lambda key: APIS[key].name)
def test_every_response_with_the_field_tells_the_throttle_time(limited: Limited, key: int) -> None:
    """Also those that refuse the request: what the requests name does not exist."""
    server, client_id = limited.server, f"client-{key}"
    set_quotas(server, REQUEST, [({"client-id": client_id}, 0.00001)])
    batch, oldest, newest = bytes(make_batch()), APIS[key].oldest, APIS[key].advertised()[1]
    versions = () if key == ApiKey.API_VERSIONS else THROTTLED_ROWS[key].versions
    for version in versions or sorted({oldest, newest}):
        asked = Ask(version, dict.fromkeys(("t", "u"), Uuid(b"\7" * 16)), batch, batch, b"no token")
        fields = {} if key == ApiKey.API_VERSIONS else THROTTLED_ROWS[key].fields(asked)
        if key == ApiKey.API_VERSIONS and version >= 3:
            fields = {"client_software_name": "test", "client_software_version": "1"}
        with RawClient.to(server.bootstrap, client_id=client_id) as client:
            answer = client.request(request_of(key, fields), version)
        assert has_time(key, newest) != (key in WITHOUT_TIME)
        if has_time(key, version):
            assert 0 < answer.throttle_time_ms <= 1000, f"version {version}"
    set_quotas(server, REQUEST, [({"client-id": client_id}, None)])


# Changes of the metadata


def create(name: str, _: int) -> Message:
    topic = CreatableTopic(name=name, num_partitions=30, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=9000)


def delete(name: str, version: int) -> Message:
    if version < 6:
        return DeleteTopicsRequest(topic_names=[name], timeout_ms=9000)
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=9000)


def grow(name: str, _: int) -> Message:
    return CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=name, count=31, assignments=None)], timeout_ms=9000)


@pytest.mark.parametrize(
    ("change_of", "exists", "old", "strict"),
    [(create, False, 4, 6), (delete, True, 4, 6), (grow, True, 2, 3)],
    ids=["CreateTopics", "DeleteTopics", "CreatePartitions"],
)
def test_changes_beyond_their_quota(
    server: KafkaServer, change_of: Callable[[str, int], Message], exists: bool, old: int, strict: int
) -> None:
    """30 partitions at 1/s, of which `WINDOWS` are free: done once, then refused; in old versions done, and paid later."""
    names = [f"changed-{next(_numbers)}" for _ in range(3)]
    if exists:
        for name in names:
            make_topic(server.bootstrap, name, 1 if change_of is grow else 30)
    entity = {"client-id": f"client-{next(_numbers)}"}
    set_quotas(server, MUTATION, [(entity, 1)])

    def code_and_time(name: str, version: int) -> tuple[int, int]:
        with RawClient.to(server.bootstrap, client_id=entity["client-id"]) as client:
            answer = client.request(change_of(name, version), version)
        (only,) = next(getattr(answer, each) for each in ("topics", "responses", "results") if hasattr(answer, each))
        return only.error_code, answer.throttle_time_ms

    assert code_and_time(names[0], strict) == (0, 0)
    code, told_ms = code_and_time(names[1], strict)
    assert code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert 15_000 < told_ms <= (30 - WINDOWS) * 1000
    code, later_ms = code_and_time(names[2], old)
    assert code == 0
    assert later_ms > told_ms + 15_000
    set_quotas(server, MUTATION, [(entity, None)])


# Connections


@pytest.fixture
def clients() -> Iterator[list[RawClient]]:
    """Clients that are closed at the end of the test."""
    made: list[RawClient] = []
    yield made
    for client in made:
        client.close()


def is_served(client: RawClient) -> bool:
    return state_of(client) == "served"


def state_of(client: RawClient) -> str:
    """`served`, `refused`, or `waiting` if there is no answer in time."""
    try:
        client.request(MetadataRequest(topics=[]), 9)
    except TimeoutError:
        return "waiting"
    except OSError:
        return "refused"
    return "served"


def fill(limited: Limited, clients: list[RawClient], expected: str, **options: Any) -> RawClient:
    """Connect until one client is not served; returns that one. A limit that was just set may not be known yet."""
    deadline_s = time.monotonic() + 10
    while time.monotonic() < deadline_s:
        clients.append(limited.connect(**options))
        state = state_of(clients[-1])
        if state != "served":
            assert state == expected
            return clients[-1]
        time.sleep(0.02)
    raise AssertionError(f"{len(clients)} connections were served")


@pytest.mark.parametrize(
    ("setting", "value"), [("max.connections.per.ip", "12"), ("max.connections.per.ip.overrides", "127.0.0.1:12")]
)
def test_connections_of_an_address_beyond_their_number_are_refused(
    limited: Limited, clients: list[RawClient], setting: str, value: str
) -> None:
    limited.set(setting, value)
    try:
        fill(limited, clients, "refused")
        filling = clients[:]
        if setting.endswith("overrides"):
            others = [limited.connect(source="127.0.0.2") for _ in range(6)]
            clients += others
            assert [state_of(each) for each in others] == ["served"] * 6, "the limit is for one address"
        # The harness is at this address too, and more than allowed may have connected before the limit was known.
        while not is_open_to(limited, clients):
            left = [each for each in filling if is_served(each)]
            left.pop(0).close()
        assert len(left) < 12
    finally:
        limited.set(setting, None)
    await_true(lambda: is_open_to(limited, clients) and is_open_to(limited, clients), "the limit to be gone")


def is_open_to(limited: Limited, clients: list[RawClient]) -> bool:
    """Whether another client is served."""
    clients.append(limited.connect(timeout_s=5))
    return state_of(clients[-1]) == "served"


def room_made(served: list[RawClient], waiting: RawClient) -> int:
    """Close clients until the one that waits is served; returns how many are left. More than allowed may have connected
    before a new limit was known."""
    while served:
        served.pop(0).close()
        with suppress(TimeoutError):
            assert waiting.receive(ApiKey.METADATA, 9).brokers
            return len(served)
    raise AssertionError("the client waits though there is room")


def test_connections_beyond_the_number_of_their_listener_wait(limited: Limited, clients: list[RawClient]) -> None:
    limited.set("listener.name.other.max.connections", 3, of_one=True)
    try:
        waiting = fill(limited, clients, "waiting")
        clients.append(limited.connect("PLAINTEXT"))
        assert state_of(clients[-1]) == "served", "the other listener has room"
        assert room_made(clients[:-2], waiting) == 2
    finally:
        limited.set("listener.name.other.max.connections", None, of_one=True)


def test_connections_beyond_the_number_of_the_broker_wait(limited: Limited, clients: list[RawClient]) -> None:
    """But not those of other brokers: in their place, the client that was silent for longest is closed."""
    limited.set("max.connections", 6)
    try:
        waiting = fill(limited, clients, "waiting")
        served = clients[:-1]
        clients.append(limited.connect("PLAINTEXT"))
        assert state_of(clients[-1]) == "served"
        await_true(lambda: is_ended(served[0]), "the client that was silent for longest to be closed")
        assert room_made(served, waiting) <= 3, "the harness has connections, too"
    finally:
        limited.set("max.connections", None)


def test_lowered_number_of_connections_closes_the_idlest(limited: Limited, clients: list[RawClient]) -> None:
    clients += [limited.connect() for _ in range(10)]
    assert [state_of(each) for each in clients] == ["served"] * 10
    limited.set("max.connections", 6)
    try:
        await_true(lambda: is_ended(clients[0]), "the client that was silent for longest to be closed")
        assert [state_of(each) for each in clients[8:]] == ["served"] * 2
    finally:
        limited.set("max.connections", None)


def is_ended(client: RawClient) -> bool:
    """Whether the server has closed the connection, on which nothing is sent."""
    try:
        client.receive_frame()
    except TimeoutError:
        return False
    except OSError:
        return True
    raise AssertionError("an answer without a request")


@pytest.mark.parametrize("of_listener", [False, True], ids=["of the broker", "of a listener"])
def test_connections_beyond_their_rate_are_accepted_late(limited: Limited, clients: list[RawClient], of_listener: bool) -> None:
    """As many as `WINDOWS - 1` seconds allow come at once, and each further one is late by at most a second."""
    setting = "listener.name.third.max.connection.creation.rate" if of_listener else "max.connection.creation.rate"
    listener = "THIRD" if of_listener else "OTHER"
    time.sleep(WINDOWS)  # Apache counts connections without a limit, too
    limited.set(setting, 3, of_one=of_listener)
    try:
        waits_s: list[float] = []
        while sum(each > 0.1 for each in waits_s) < 3:
            began_s = time.monotonic()
            clients.append(limited.connect(listener, timeout_s=30))
            assert state_of(clients[-1]) == "served"
            waits_s.append(time.monotonic() - began_s)
            assert len(waits_s) < 60
        assert max(waits_s) < 1.5
        at_once = next(n for n, each in enumerate(waits_s) if each > 0.1)
        assert at_once >= 3 * BURST_S - 2, waits_s
        clients.append(limited.connect("PLAINTEXT", timeout_s=0.5))
        assert state_of(clients[-1]) == "served", "nodes do not wait for clients"
    finally:
        limited.set(setting, None, of_one=of_listener)


def test_connections_beyond_the_quota_of_their_address_are_ended_late(limited: Limited, clients: list[RawClient]) -> None:
    """So that their client does not try again at once; a default holds for each address alone."""
    limited.quota("127.0.0.1", 3)
    try:
        waits_s: list[float] = []
        while True:
            began_s = time.monotonic()
            clients.append(limited.connect(timeout_s=30))
            state = state_of(clients[-1])
            waits_s.append(time.monotonic() - began_s)
            if state == "refused" and waits_s[-1] > 0.25:  # the first may be above the limit by less
                break
            assert len(waits_s) < 60
        assert waits_s[-1] < 1.5
        assert len(waits_s) >= 3 * BURST_S - 2
        clients.append(limited.connect(source="127.0.0.2", timeout_s=30))
        assert state_of(clients[-1]) == "served"
    finally:
        limited.quota("127.0.0.1", None)
    await_true(lambda: is_open_to(limited, clients), "the limit to be gone")
