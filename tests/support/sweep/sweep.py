"""A sweep over every API and version: the same requests to any server, the replies in a form that can be compared.

`sweep(server)` sends every case of `sweep_cases` in turn, to the broker's listener or the controller's, and returns one
normalised reply per case. Values that differ between servers (ids, ports, folders, times, texts) become placeholders;
everything else, down to the bytes of fetched records, must be the same. Replies of Apache Kafka 4.3.0 are kept in `GOLDEN`.
"""

import gzip
import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.peers.raw_client import ConnectionClosed, RawClient
from tests.support.servers.kafka_server import KafkaServer

from ottla.broker.requests.apis import ON_BROKER, ON_CONTROLLER
from ottla.wire.apis import APIS, ApiKey
from ottla.wire.base import Message

GOLDEN = Path(__file__).parents[2] / "golden/broker/replies.jsonl.gz"
COORDINATED_GOLDEN = GOLDEN.with_name("coordinator_replies.jsonl.gz")
COORDINATED = {
    *(ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.OFFSET_DELETE, ApiKey.TXN_OFFSET_COMMIT),
    *(ApiKey.LIST_GROUPS, ApiKey.DESCRIBE_GROUPS, ApiKey.DELETE_GROUPS, ApiKey.FIND_COORDINATOR),
    *(ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE),
    *(ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN, ApiKey.WRITE_TXN_MARKERS),
    *(ApiKey.LIST_TRANSACTIONS, ApiKey.DESCRIBE_TRANSACTIONS),
}
"""APIs of coordinators, which have their own sweep."""

DROPPED = {"throttle_time_ms", "unknown_tags", "session_id", "error_message", "batch_index_error_message"}
TEXTS = {"documentation"}
NUMBERS = {
    *("transaction_start_time_ms",),
    *("total_bytes", "usable_bytes", "port", "finalized_features_epoch", "producer_id", "last_fetch_timestamp"),
    *("last_caught_up_timestamp", "partition_size", "cluster_metadata_offset"),
}
COORDINATOR_LOAD_IN_PROGRESS = 14
NOT_SERVED_YET = {"share.version", "streams.version"}
"""Features that Ottla does not have yet: their levels stay 0."""


@dataclass(frozen=True, slots=True)
class Case:
    """One request in one version. `make` builds it when its turn comes: by then earlier cases have had their effect."""

    name: str
    version: int
    make: Callable[[], Message]
    on_controller: bool = False

    def __str__(self) -> str:
        return f"{self.name} v{self.version}{' at the controller' if self.on_controller else ''}"


def ask_all(server: KafkaServer, cases: Iterable[Case]) -> dict[str, Any]:
    """The normalised reply to every case, in turn."""
    replies: dict[str, Any] = {}
    folders = str(server.properties["log.dirs"]).split(",")
    for case in cases:
        assert str(case) not in replies, f"{case} comes twice"
        request = case.make()
        with RawClient.to(server.controller_bootstrap if case.on_controller else server.bootstrap, client_id="sweep") as client:
            try:
                reply = client.request(request, case.version)
                while getattr(reply, "error_code", 0) == COORDINATOR_LOAD_IN_PROGRESS:
                    reply = client.request(request, case.version)  # Apache says so while it fetches producer ids
                if request.KEY == ApiKey.API_VERSIONS:
                    served = ON_CONTROLLER if case.on_controller else ON_BROKER
                    reply.api_keys = [each for each in reply.api_keys if each.api_key in served]
                replies[str(case)] = normalised(reply, request.KEY, folders)
            except ConnectionClosed:
                replies[str(case)] = "closed"
            except Exception as failure:
                failure.add_note(f"while waiting for the reply to {case}")
                raise
    return replies


def normalised(value: Any, api_key: int, folders: list[str], name: str = "") -> Any:
    """A reply as plain data that is the same for two servers in the same state."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _bytes(bytes(value), name)
    if isinstance(value, list):
        return _list(value, api_key, folders, name)
    if hasattr(value, "__slots__") and not isinstance(value, (str, int, float)):
        fields = (field for part in type(value).__mro__ for field in getattr(part, "__slots__", ()))
        return {field: normalised(getattr(value, field), api_key, folders, field) for field in fields if field not in DROPPED}
    if name in TEXTS:
        return value if value is None else "text"
    if name == "member_id" and value:
        return "text"
    if name in NUMBERS or (api_key == 55 and name in ("high_watermark", "log_end_offset", "leader_epoch")):
        return value if value == -1 else "number"
    if isinstance(value, str):
        for index, folder in enumerate(folders):
            value = value.replace(folder, f"folder {index}")
    return value


def _bytes(value: bytes, name: str) -> str | None:
    if name == "records":
        return f"{len(value)} bytes, {hashlib.sha256(value).hexdigest()[:16]}" if value else "none"
    return "id" if any(value) else "no id"


def _list(value: list[Any], api_key: int, folders: list[str], name: str) -> list[Any]:
    items = [normalised(each, api_key, folders, name) for each in value]
    if name in ("supported_features", "finalized_features"):
        items = [each for each in items if each["name"] not in NOT_SERVED_YET]
    return sorted(items, key=lambda each: json.dumps(each, sort_keys=True))


def read_golden(path: Path = GOLDEN) -> dict[str, Any]:
    """What Apache Kafka 4.3.0 replied."""
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    return dict(json.loads(line) for line in lines)


def write_golden(replies: dict[str, Any], path: Path = GOLDEN) -> None:
    """Write Apache Kafka's replies, without a timestamp: equal replies give an equal file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row, sort_keys=True) + "\n" for row in replies.items())
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def differences(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """Where two replies differ, one line per place."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        keys = sorted(set(ours) | set(theirs))
        return [line for key in keys for line in differences(ours.get(key), theirs.get(key), f"{path}.{key}")]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [line for index, (one, other) in pairs for line in differences(one, other, f"{path}[{index}]")]
    return [] if ours == theirs else [f"{path}: {_short(ours)}, but Apache: {_short(theirs)}"]


def _short(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return text if len(text) < 300 else text[:300] + " …"


def versions_of(api_key: int) -> range:
    """The versions that a request can be sent in: those advertised that have a schema."""
    api = APIS[api_key]
    return range(api.oldest, api.advertised()[1] + 1)
