"""Keeps log directories that a released version wrote, so that every later version can be tried on them.

    python -m tools.golden_directories 0.1.0    before a tag is set: writes tests/golden/directories/0.1.0.tar.xz

One archive holds two log directories of the same node, `unclean` (killed, with a transaction open) and `clean` (started again,
and stopped), and `expected.json`: the settings to start with, and all that a client must find. The workload: records of every
codec with keys, nulls, headers and timestamps, several segments, a compacted topic, transactions that were committed, aborted
and left open, groups, a SCRAM user, access rules, quotas, settings of topics and brokers.
`tests/compat/test_golden_directories.py` opens each archive.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import lzma
import re
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.ottla_server import start_ottla

from ottla import AclBinding, Admin, Consumer, NewTopic, Producer, QuotaEntity, ScramUpsertion

FOLDER = Path(__file__).parents[1] / "tests" / "golden" / "directories"
SIZE_BYTES_MAX = 300_000

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
START_MS = 1_700_000_000_000
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "log.index.size.max.bytes": 4096,
    "log.cleaner.backoff.ms": 100,
    "log.retention.ms": -1,
    "offsets.retention.minutes": 2_147_483_647,
}
"""Of the node that writes, and of those that read. Nothing expires: the directories are opened years later."""

TOPICS = {
    **{f"codec-{codec}": {"compression.type": "producer"} for codec in CODECS},
    "segments": {"segment.ms": 1000, "message.timestamp.type": "CreateTime"},
    "compacted": {
        "cleanup.policy": "compact",
        "segment.ms": 1000,
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": 9_000_000_000_000,
    },
    "transactions": {"min.insync.replicas": 1},
}
PARTITIONS = 2
USER, GROUP, OPEN_ID = "alice", "readers", "left-open"


def write_workload(bootstrap: str) -> None:
    """All that is in the directories, but for what `leave_open` adds."""
    with Admin(bootstrap) as admin:
        admin.create_topics([NewTopic(name, PARTITIONS, configs=configs) for name, configs in TOPICS.items()]).raise_first()
        admin.alter_user_scram_credentials([ScramUpsertion(USER, "SCRAM-SHA-256", "secret", 4096)]).raise_first()
        admin.create_acls(
            [
                AclBinding("topic", "codec-", f"User:{USER}", "read", pattern_type="prefixed"),
                AclBinding("group", GROUP, f"User:{USER}", "all", "deny", "10.0.0.1"),
            ]
        ).raise_first()
        admin.alter_client_quotas({QuotaEntity(user=USER): {"producer_byte_rate": 1_000_000}}).raise_first()
        admin.alter_configs({("broker", "1"): {"log.cleaner.threads": 2}}).raise_first()
        admin.alter_configs({("topic", "segments"): {"retention.ms": 9_000_000_000_000}}).raise_first()
    for codec in CODECS:
        with Producer(bootstrap, compression_type=codec, batch_size=2000, linger_ms=5) as producer:
            for number in range(60):
                producer.send(
                    f"codec-{codec}",
                    None if number % 20 == 19 else f"value {number} of {codec}".encode() * (1 + number % 5),
                    key=None if number % 7 == 6 else f"key-{number % 10}".encode(),
                    partition=number % PARTITIONS,
                    headers=[("n", str(number).encode()), ("empty", None)] if number % 3 == 0 else None,
                    timestamp=START_MS + number,
                )
    with Producer(bootstrap) as producer:
        for number in range(12):  # a segment each: their times are further apart than segment.ms
            producer.send("segments", f"segment {number}".encode(), partition=0, timestamp=START_MS + number * 5000).result()
        for number in range(30):
            value = None if number in (25, 26) else f"version {number}".encode()
            producer.send(
                "compacted", value, key=f"k{number % 5}".encode(), partition=0, timestamp=START_MS + number * 5000
            ).result()
    with Producer(bootstrap, transactional_id="ended") as producer:
        producer.init_transactions()
        for number in range(6):
            producer.begin_transaction()
            for partition in range(PARTITIONS):
                producer.send(
                    "transactions", f"transaction {number}".encode(), partition=partition, timestamp=START_MS + number
                )
            producer.flush()
            producer.abort_transaction() if number % 3 == 2 else producer.commit_transaction()
    with Admin(bootstrap) as admin:
        offsets = {(f"codec-{codec}", partition): 10 + partition for codec in CODECS for partition in range(PARTITIONS)}
        admin.alter_consumer_group_offsets("committed-by-admin", offsets).raise_first()
    for protocol in ("classic", "consumer"):
        with Consumer(
            bootstrap, group_id=f"{GROUP}-{protocol}", group_protocol=protocol, auto_offset_reset="earliest"
        ) as consumer:
            consumer.subscribe(["codec-none"])
            await_true(lambda: bool(consumer.poll(1.0)), "records for a group")  # called here
            consumer.commit()
    await_true(lambda: len(read(bootstrap)["compacted-0"]) < 20, "the compacted topic is compacted")


def leave_open(bootstrap: str) -> Producer:
    """A transaction that nobody ends before the node is killed."""
    producer = Producer(bootstrap, transactional_id=OPEN_ID, transaction_timeout_ms=600_000)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("transactions", b"never committed", partition=0, timestamp=START_MS).result()
    return producer


# -- what a client finds


def read(bootstrap: str, isolation: str = "read_uncommitted") -> dict[str, list[Any]]:
    """All records up to the end of each partition, by `topic-partition`: offset, time, key, value, headers."""
    places = [(topic, partition) for topic in TOPICS for partition in range(PARTITIONS)]
    with Admin(bootstrap) as admin:
        ends = {
            key: found.offset
            for key, found in admin.list_offsets(dict.fromkeys(places, "latest"), isolation_level=isolation).items()
        }
    found: dict[str, list[Any]] = {f"{topic}-{partition}": [] for topic, partition in places}
    with Consumer(bootstrap, isolation_level=isolation, auto_offset_reset="earliest", check_crcs=True) as consumer:
        consumer.assign(places)
        deadline_s = time.monotonic() + HANG_S
        while any(consumer.position(place) < ends[place] for place in places):
            for each in consumer.poll(0.5):
                headers = [[name, text(value)] for name, value in each.headers]
                record = [each.offset, each.timestamp, text(each.key), text(each.value), headers]
                found[f"{each.topic}-{each.partition}"].append(record)
            assert time.monotonic() < deadline_s, f"the records up to {ends}: not within {HANG_S} s"
    return found


def settings_of(admin: Admin, kind: str, name: str) -> Any:
    return next(iter(admin.describe_configs([(kind, name)]).values()))


def text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def find_all(bootstrap: str) -> dict[str, Any]:
    """Everything that must be the same after an upgrade, as JSON has it."""
    with Admin(bootstrap) as admin:
        groups = ["committed-by-admin", f"{GROUP}-classic", f"{GROUP}-consumer"]
        offsets = {
            group: sorted(
                [key.topic, key.partition, found.offset]
                for key, found in admin.list_consumer_group_offsets([group])[group].items()
            )
            for group in groups
        }
        configs = {
            name: {
                key: entry.value
                for key, entry in settings_of(admin, "topic", name).items()
                if entry.source.name == "DYNAMIC_TOPIC_CONFIG"
            }
            for name in TOPICS
        }
        threads = settings_of(admin, "broker", "1")["log.cleaner.threads"].value
        users = {
            user: [[each.mechanism.name, each.iterations] for each in found]
            for user, found in admin.describe_user_scram_credentials().items()
        }
        acls = sorted(str(each) for each in admin.describe_acls())
        quotas = sorted([str(entity), sorted(found.items())] for entity, found in admin.describe_client_quotas().items())
        topics = {name: found.id.hex() for name, found in admin.describe_topics(list(TOPICS)).items()}
        features = {name: level.highest for name, level in admin.describe_features().finalized.items()}
    records = {
        f"{place} {isolation}": found
        for isolation in ("read_uncommitted", "read_committed")
        for place, found in read(bootstrap, isolation).items()
    }
    found = {
        "records": records, "offsets": offsets, "configs": configs, "broker": threads, "users": users, "acls": acls,
        "quotas": quotas, "topics": topics, "features": features,
    }  # fmt: skip
    as_json: dict[str, Any] = json.loads(json.dumps(found))
    return as_json


def await_true(condition: Callable[[], bool], what: str, timeout_s: float = HANG_S) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise AssertionError(f"{what}: not within {timeout_s:g} s")
        time.sleep(0.05)


# -- archives


def make(version: str, target: Path) -> None:
    """Run the workload on this version, and pack what it leaves."""
    packed = io.BytesIO()
    with tempfile.TemporaryDirectory(prefix="ottla-golden-") as name, tarfile.open(fileobj=packed, mode="w") as archive:
        data = Path(name) / "data"
        server = start_ottla(SETTINGS, data_dir=data)
        try:
            write_workload(server.bootstrap)
            producer = leave_open(server.bootstrap)
            expected = find_all(server.bootstrap)
        finally:
            server.kill()
        producer.close(timeout=0)
        _add(archive, data, "unclean")
        with start_ottla(SETTINGS, data_dir=data) as server:
            assert find_all(server.bootstrap) == expected, "a kill lost something: this version must not be released"
        _add(archive, data, "clean")
        content = json.dumps({"version": version, "settings": SETTINGS, "expected": expected}, indent=0).encode()
        entry = tarfile.TarInfo("expected.json")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    data_bytes = lzma.compress(packed.getvalue(), preset=9 | lzma.PRESET_EXTREME)
    assert len(data_bytes) <= SIZE_BYTES_MAX, f"{len(data_bytes)} bytes are too many to keep"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data_bytes)


def _add(archive: tarfile.TarFile, folder: Path, name: str) -> None:
    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        return None if entry.name.endswith("/.lock") else entry

    archive.add(folder, name, filter=plain)


def unpack(archive: Path, folder: Path) -> dict[str, Any]:
    """Unpack an archive; returns what is in expected.json."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    content: dict[str, Any] = json.loads((folder / "expected.json").read_text())
    return content


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.golden_directories", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("version", help="the version that is about to be tagged")
    parser.add_argument(
        "--replace", action="store_true", help="replace an archive: only for a version that is not released yet"
    )
    given = parser.parse_args()
    target = FOLDER / f"{given.version}.tar.xz"
    if not re.fullmatch(r"\d+\.\d+\.\d+", given.version):
        sys.exit(f"{given.version} is no version: write three numbers, such as 0.1.0")
    if target.exists() and not given.replace:
        sys.exit(f"{target} exists: what a released version wrote is never written again (--replace before the release)")
    make(given.version, target)
    print(f"{target}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
