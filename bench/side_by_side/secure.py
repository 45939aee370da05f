"""The rows of security: TLS, logins, access control and quotas, on servers of their own.

TLS 1.3 with Kafka's own tools as clients; SCRAM logins, each on a new connection; produce with 1,000 rules against the same
node without any; a quota, and what it lets through; and one decision of the authorizer among 100,000 rules.
"""

import hashlib
import statistics
import threading
import time
from pathlib import Path
from typing import Any

from bench.side_by_side import consume, produce
from bench.side_by_side.admin import create_topic, delete_topic
from bench.side_by_side.errors import AdminFailed
from bench.side_by_side.figures import APACHE, OTTLA, Figure, at_least, at_most
from bench.side_by_side.processes import cpu_seconds
from bench.side_by_side.sides import SETTINGS, SETTLE_S, Bench, Side
from tests.support.peers.raw_client import RawClient
from tests.support.peers.sasl_login import scram_login
from tests.support.servers.certificates import Authority
from tests.support.servers.kafka_server import SERVER_JVM_FLAGS, KafkaServer, free_ports, ports_of
from tests.support.servers.ottla_server import start_ottla

from ottla.broker.requests.audit_log import AuditLog
from ottla.broker.requests.authorization import Grants
from ottla.config.authorizer import AuthorizerConfig
from ottla.ids import Principal, Uuid
from ottla.metadata.authorizer import StandardAuthorizer
from ottla.wire.apis import ApiKey
from ottla.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from ottla.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.metadata_records import AccessControlEntryRecord

RECORDS, RECORDS_QUICK = 1_000_000, 200_000
RECORD_BYTES = 1000
LOGIN_THREADS, LOGIN_S, LOGIN_S_QUICK = 4, 5.0, 2.0
PASSWORD, SALT, ITERATIONS = "alice-secret", b"salt-of-the-bench", 4096
RULES, RULES_MANY = 1_000, 100_000
QUOTA_BYTES = 10_000_000
QUOTA_RECORDS, QUOTA_RECORDS_QUICK = 500_000, 300_000
"""50 and 30 s at the limit."""
QUOTA_WINDOWS = 2
"""Windows of a second. With Kafka's default of 11, a client that was silent may send 10 s of its quota at once, and the rate of
the whole run would tell of little else."""
QUOTA_OFF_MAX = 5.0
"""Percent that the rate may be off."""
DECISIONS = 2_000
CACHED_US, UNCACHED_US = 5.0, 100.0
TOPIC_TYPE, CLUSTER_TYPE, LITERAL, PREFIXED, ALL, READ, ALLOW = 2, 4, 3, 4, 2, 3, 3
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:nobody",
    "allow.everyone.if.no.acl.found": "true",
}


def rows(bench: Bench) -> list[Figure]:
    bench.end_pair()
    figures: list[Figure] = []
    if any(bench.options.wants_part("secure", part) for part in ("tls", "logins", "quota")):
        figures += _with_listeners(bench)
    if bench.options.wants_part("secure", "rules"):
        figures += _rules(bench)
    if bench.options.wants_part("secure", "decision"):
        figures += _decisions(bench)
    return figures


def start(bench: Bench, label: str, settings: dict[str, object]) -> Side:
    bench.progress.say(f"starting {label}")
    is_apache = label == APACHE
    own = SETTINGS | settings
    server = bench.kafka.start_server(own, jvm_flags=SERVER_JVM_FLAGS) if is_apache else start_ottla(own)
    bench.keep(server)
    return Side(label, server)


def _listeners(folder: Path) -> dict[str, object]:
    """PLAINTEXT for the harness, TLS and SASL for the loads."""
    authority = Authority(folder / "authority")
    issued = authority.issue("localhost", ["DNS:localhost", "IP:127.0.0.1"])
    names = ("PLAINTEXT", "TLS", "SASL", "CONTROLLER")
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    return {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TLS:SSL,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "advertised.listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items() if name != "CONTROLLER"),
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports['CONTROLLER']}",
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(issued.single_file()),
        "ssl.enabled.protocols": "TLSv1.3",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.sasl.scram-sha-512.sasl.jaas.config": SCRAM_MODULE,
        "quota.window.num": QUOTA_WINDOWS,
    }


def _with_listeners(bench: Bench) -> list[Figure]:
    folder = bench.folder / "secure"
    sides = [start(bench, label, _listeners(folder / label.split()[0])) for label in (APACHE, OTTLA)]
    time.sleep(SETTLE_S)
    figures: list[Figure] = []
    if bench.options.wants_part("secure", "tls"):
        figures += _tls(bench, sides, folder)
    if bench.options.wants_part("secure", "logins"):
        figures += _logins(bench, sides)
    if bench.options.wants_part("secure", "quota"):
        figures += _quota(bench, sides)
    for side in sides:
        bench.end(side)
    return figures


# TLS


def _tls(bench: Bench, sides: list[Side], folder: Path) -> list[Figure]:
    records = bench.options.scaled(RECORDS, RECORDS_QUICK)
    measured: dict[str, tuple[list[float], list[float]]] = {}

    def keep(name: str, place: int, value: float) -> None:
        measured.setdefault(name, ([], []))[place].append(value)

    for number in range(bench.options.rounds + 1):
        for place, side in enumerate(sides):
            trust = folder / side.label.split()[0] / "authority" / "authority.pem"
            properties = [
                "security.protocol=SSL",
                "ssl.truststore.type=PEM",
                f"ssl.truststore.location={trust}",
                f"bootstrap.servers=127.0.0.1:{ports_of(side.server.properties)['TLS']}",
            ]
            topic = f"secure-{number}"
            create_topic(side.server, topic, 6)
            before = cpu_seconds(side.pid)
            arguments = ["--topic", topic, "--num-records", records, "--record-size", RECORD_BYTES, "--throughput", -1]
            output = bench.run_class(produce.TOOL, *arguments, "--command-property", "acks=all", *properties)
            cost = (cpu_seconds(side.pid) - before) / (records * RECORD_BYTES / 1e9)
            rate = produce.parse_rate(output)
            before = cpu_seconds(side.pid)
            config = folder / f"{side.label.split()[0]}.properties"
            config.write_text("".join(f"{each}\n" for each in properties))
            arguments = ["--bootstrap-server", properties[-1].partition("=")[2], "--topic", topic, "--num-records", records]
            output = bench.run_class(consume.TOOL, *arguments, "--group", f"g{number}", "--command-config", config)
            read_cost = (cpu_seconds(side.pid) - before) / (records * RECORD_BYTES / 1e9)
            read_rate = consume.parse_rate(output, records)
            delete_topic(side.server, topic)
            text = f"{side.label} {rate:.0f} MB/s, {cost:.2f} CPU s/GB; read {read_rate:.0f} MB/s, {read_cost:.2f} CPU s/GB"
            bench.progress.say(f"TLS 1.3, round {number} of {bench.options.rounds}: {text}")
            if number:  # the first warms up
                keep("produce", place, rate)
                keep("produce-cpu", place, cost)
                keep("consume", place, read_rate)
                keep("consume-cpu", place, read_cost)
    what = "1 KB × 6 partitions, TLS 1.3"
    cpu = at_most(0.8)
    return [
        Figure("secure:tls-produce", f"produce {what}", "MB/s", *measured["produce"], goal=at_least(1.0)),
        Figure("secure:tls-produce-cpu", f"broker CPU, produce {what}", "s per GB", *measured["produce-cpu"], goal=cpu),
        Figure("secure:tls-consume", f"consume {what}", "MB/s", *measured["consume"], goal=at_least(1.0)),
        Figure("secure:tls-consume-cpu", f"broker CPU, consume {what}", "s per GB", *measured["consume-cpu"], goal=cpu),
    ]


# Logins


def _logins(bench: Bench, sides: list[Side]) -> list[Figure]:
    for side in sides:
        _add_user(side.server)
    rates: tuple[list[float], list[float]] = ([], [])
    for number in range(bench.options.rounds + 1):
        for side, kept in zip(sides, rates, strict=True):
            rate = _logins_per_s(side, bench.options.scaled(1, 0))
            bench.progress.say(f"logins, round {number} of {bench.options.rounds}: {side.label} {rate:.0f}/s")
            if number:
                kept.append(rate)
    return [Figure("secure:logins", "SCRAM-SHA-512 logins, each on a new connection", "per s", *rates)]


def _add_user(server: KafkaServer) -> None:
    salted = hashlib.pbkdf2_hmac("sha512", PASSWORD.encode(), SALT, ITERATIONS)
    upsertion = ScramCredentialUpsertion(name="alice", mechanism=2, iterations=ITERATIONS, salt=SALT, salted_password=salted)
    with RawClient.to(server.bootstrap) as client:
        answer = client.request(AlterUserScramCredentialsRequest(upsertions=[upsertion]), 0)
    if answer.results[0].error_code:
        raise AdminFailed(f"{server.name} did not add a user: {answer.results[0]}")


def _logins_per_s(side: Side, is_long: int) -> float:
    port = ports_of(side.server.properties)["SASL"]
    seconds = LOGIN_S if is_long else LOGIN_S_QUICK
    counts = [0] * LOGIN_THREADS
    end = time.perf_counter() + seconds

    def work(place: int) -> None:
        while time.perf_counter() < end:
            client = RawClient(port)
            answer = scram_login(client, "alice", PASSWORD, "SCRAM-SHA-512")
            client.close()
            if answer.error_code:
                raise AdminFailed(f"{side.label} refused a login: {answer}")
            counts[place] += 1

    threads = [threading.Thread(target=work, args=(place,)) for place in range(LOGIN_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds


# Quotas


def _quota(bench: Bench, sides: list[Side]) -> list[Figure]:
    records = bench.options.scaled(QUOTA_RECORDS, QUOTA_RECORDS_QUICK)
    off: tuple[list[float], list[float]] = ([], [])
    entity = [AlterClientQuotasRequestEntityData(entity_type="client-id", entity_name="perf-producer-client")]
    for side, kept in zip(sides, off, strict=True):
        _alter_quota(side.server, entity, is_removed=False)
        create_topic(side.server, "quota", 6)
        rate = produce.run_tool(bench, side, "quota", records, RECORD_BYTES) * 2**20
        kept.append(abs(rate / QUOTA_BYTES - 1) * 100)
        bench.progress.say(f"quota of {QUOTA_BYTES / 1e6:.0f} MB/s: {side.label} {rate / 1e6:.2f} MB/s")
        delete_topic(side.server, "quota")
        _alter_quota(side.server, entity, is_removed=True)
    what = f"produce under a quota of {QUOTA_BYTES / 1e6:.0f} MB/s, rate off by"
    return [Figure("secure:quota", what, "%", *off, at_most(1.0), [QUOTA_OFF_MAX], "the limit")]


def _alter_quota(server: KafkaServer, entity: list[Any], *, is_removed: bool) -> None:
    op = OpData(key="producer_byte_rate", value=float(QUOTA_BYTES), remove=is_removed)
    with RawClient.to(server.bootstrap) as client:
        request = AlterClientQuotasRequest(entries=[AlterClientQuotasRequestEntryData(entity=entity, ops=[op])])
        answer = client.request(request, 1)
    if answer.entries[0].error_code:
        raise AdminFailed(f"{server.name} did not set a quota: {answer.entries[0]}")


# Access control


def _rules(bench: Bench) -> list[Figure]:
    sides = [start(bench, APACHE, dict(AUTHORIZER)), start(bench, OTTLA, dict(AUTHORIZER)), start(bench, OTTLA, {})]
    time.sleep(SETTLE_S)
    for side in sides[:2]:
        _add_rules(side.server)
    records = bench.options.scaled(RECORDS, RECORDS_QUICK)
    rates: tuple[list[float], list[float], list[float]] = ([], [], [])
    costs: tuple[list[float], list[float], list[float]] = ([], [], [])
    names = ("with rules", "with rules", "without")
    for number in range(bench.options.rounds + 1):
        for side, rate_kept, cost_kept, name in zip(sides, rates, costs, names, strict=True):
            topic = f"ruled-{number}"
            create_topic(side.server, topic, 6)
            before = cpu_seconds(side.pid)
            rate = produce.run_tool(bench, side, topic, records, RECORD_BYTES)
            cost = (cpu_seconds(side.pid) - before) / (records * RECORD_BYTES / 1e9)
            delete_topic(side.server, topic)
            bench.progress.say(f"{RULES:,} rules, round {number}: {side.label} {name} {rate:.0f} MB/s, {cost:.2f} CPU s/GB")
            if number:
                rate_kept.append(rate)
                cost_kept.append(cost)
    for side in sides:
        bench.end(side)
    what, without = f"produce 1 KB × 6 partitions, {RULES:,} rules", "Ottla without an authorizer"
    return [
        Figure("secure:rules", what, "MB/s", *rates[:2], at_least(0.97), rates[2], without),
        Figure("secure:rules-cpu", f"broker CPU, {what}", "s per GB", *costs[:2], at_most(1.03), costs[2], without),
    ]


def _add_rules(server: KafkaServer) -> None:
    """Rules about other topics, and those by which the loads are allowed."""
    rules = [_rule(TOPIC_TYPE, f"other-{number}", LITERAL, f"User:user-{number % 50}", READ) for number in range(RULES - 2)]
    rules += [_rule(TOPIC_TYPE, "ruled-", PREFIXED, "User:ANONYMOUS", ALL)]
    rules += [_rule(CLUSTER_TYPE, "kafka-cluster", LITERAL, "User:ANONYMOUS", ALL)]
    with RawClient.to(server.bootstrap) as client:
        for begin in range(0, len(rules), 500):
            answer = client.request(CreateAclsRequest(creations=rules[begin : begin + 500]), 3)
            if any(each.error_code for each in answer.results):
                raise AdminFailed(f"{server.name} did not take the rules")


def _rule(kind: int, name: str, pattern: int, principal: str, operation: int) -> AclCreation:
    return AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=pattern,
        principal=principal,
        host="*",
        operation=operation,
        permission_type=ALLOW,
    )


def _decisions(bench: Bench) -> list[Figure]:
    """µs for one decision among many rules: one that was made before, and new ones."""
    authorizer = StandardAuthorizer(AuthorizerConfig(frozenset(), False))
    records = [
        AccessControlEntryRecord(
            id=Uuid(number.to_bytes(16, "big")),
            resource_type=TOPIC_TYPE,
            resource_name=f"topic-{number // 4}-" if number % 4 == 0 else f"topic-{number // 4}-{number % 4}",
            pattern_type=PREFIXED if number % 4 == 0 else LITERAL,
            principal=f"User:user-{number % 500}",
            host="*",
            operation=READ,
            permission_type=ALLOW,
        )
        for number in range(RULES_MANY)
    ]
    rules = {each.id: each for each in records}
    authorizer.follow(rules, rules)
    grants = Grants(authorizer, AuditLog(time.monotonic), Principal("User", "user-4"), "127.0.0.1")
    fresh = [f"topic-{number}-" for number in range(1, RULES_MANY // 4, RULES_MANY // 4 // DECISIONS)]
    uncached = [_timed_us(grants, name) for name in fresh]
    allowed = next(name for name in fresh if grants.allows(READ, TOPIC_TYPE, name, ApiKey.FETCH))
    cached = [_timed_us(grants, allowed) for _ in range(DECISIONS)]
    values = statistics.median(cached), statistics.median(uncached)
    bench.progress.say(f"a decision among {RULES_MANY:,} rules: {values[0]:.2f} µs again, {values[1]:.2f} µs new")
    what = f"decision among {RULES_MANY:,} rules"
    return [
        Figure("secure:cached", f"{what}, made before", "µs", [], [values[0]], at_most(1.0), [CACHED_US], "the limit"),
        Figure("secure:uncached", f"{what}, new", "µs", [], [values[1]], at_most(1.0), [UNCACHED_US], "the limit"),
    ]


def _timed_us(grants: Grants, name: str) -> float:
    begin = time.perf_counter_ns()
    grants.allows(READ, TOPIC_TYPE, name, ApiKey.FETCH)
    return (time.perf_counter_ns() - begin) / 1000
