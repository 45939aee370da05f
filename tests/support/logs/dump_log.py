"""Parses the output of Kafka's DumpLogSegments.

Every line is either understood or a complaint: an unknown line counts as one, so that no message of Kafka about a damaged log
is missed. Offsets that do not follow each other are listed separately (`gaps`): after compaction they are expected. Keys and
payloads must not contain line ends.
"""

import re
from dataclasses import dataclass, field

DEEP_RECORD = re.compile(
    r"\| offset: (?P<offset>-?\d+) (?P<time_type>\w+): (?P<timestamp>-?\d+) keySize: (?P<key_size>-?\d+) "
    r"valueSize: (?P<value_size>-?\d+) sequence: (?P<sequence>-?\d+) headerKeys: \[(?P<headers>.*?)\](?P<rest>.*)$"
)
BATCH = re.compile(
    r"baseOffset: (?P<base_offset>-?\d+) lastOffset: (?P<last_offset>-?\d+) count: (?P<count>\d+) "
    r"baseSequence: (?P<base_sequence>-?\d+) lastSequence: (?P<last_sequence>-?\d+) producerId: (?P<producer_id>-?\d+) "
    r"producerEpoch: (?P<producer_epoch>-?\d+) partitionLeaderEpoch: (?P<leader_epoch>-?\d+) "
    r"isTransactional: (?P<transactional>true|false) isControl: (?P<control>true|false) "
    r"deleteHorizonMs: (?:OptionalLong\.empty|OptionalLong\[(?P<delete_horizon_ms>-?\d+)\]) position: (?P<position>\d+) "
    r"(?P<time_type>\w+): (?P<max_timestamp>-?\d+) size: (?P<size>\d+) magic: (?P<magic>\d+) compresscodec: (?P<codec>\w+) "
    r"crc: (?P<crc>\d+) isvalid: (?P<valid>true|false)$"
)
OFFSET_ENTRY = re.compile(r"offset: (-?\d+) position: (\d+)$")
TIME_ENTRY = re.compile(r"timestamp: (-?\d+) offset: (-?\d+)$")
ABORTED = re.compile(
    r"version: 0 producerId: (-?\d+) firstOffset: (-?\d+) lastOffset: (-?\d+) lastStableOffset: (-?\d+)$",
)
PRODUCER = re.compile(
    r"producerId: (?P<producer_id>-?\d+) producerEpoch: (?P<producer_epoch>-?\d+) "
    r"coordinatorEpoch: (?P<coordinator_epoch>-?\d+) "
    r"currentTxnFirstOffset: (?:OptionalLong\.empty|OptionalLong\[(?P<first_offset>-?\d+)\]|(?P<plain_offset>-?\d+)|None) "
    r"lastTimestamp: (?P<timestamp>-?\d+)\s*"
    r"(?:firstSequence: (?P<first_sequence>-?\d+) lastSequence: (?P<last_sequence>-?\d+) lastOffset: (?P<last_offset>-?\d+) "
    r"offsetDelta: (?P<offset_delta>-?\d+) timestamp: (?P<last_timestamp>-?\d+))?$"
)
REST = re.compile(r"^(?: key: (?P<key>.*?))?(?: payload: (?P<payload>.*))?$")
HARMLESS = re.compile(r"Log starting offset: \d+$|Snapshot end offset: \d+, epoch: \d+$|KRaft bootstrap snapshot$")
GAPS_TITLE = "Non-consecutive offsets in "
GAP = re.compile(r"  (-?\d+) is followed by (-?\d+)$")


@dataclass(frozen=True, slots=True)
class DumpedRecord:
    """One record line. `key` and `payload` are None unless printed; `rest` is the description of a control record."""

    offset: int
    timestamp: int
    key_size: int
    value_size: int
    sequence: int
    header_keys: tuple[str, ...]
    key: str | None
    payload: str | None
    rest: str


@dataclass(frozen=True, slots=True)
class DumpedBatch:
    """One batch line and the records under it (deep iteration only)."""

    base_offset: int
    last_offset: int
    count: int
    base_sequence: int
    last_sequence: int
    producer_id: int
    producer_epoch: int
    leader_epoch: int
    is_transactional: bool
    is_control: bool
    delete_horizon_ms: int | None
    position: int
    time_type: str
    max_timestamp: int
    size: int
    codec: str
    crc: int
    records: list[DumpedRecord] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DumpedProducer:
    """One producer of a snapshot file; the last five fields are None if the snapshot has no batch of it."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    current_txn_first_offset: int | None
    last_timestamp: int
    first_sequence: int | None
    last_sequence: int | None
    last_offset: int | None
    offset_delta: int | None
    timestamp: int | None


@dataclass(slots=True)
class DumpedFile:
    """The output for one file."""

    path: str
    batches: list[DumpedBatch] = field(default_factory=list)
    offset_entries: list[tuple[int, int]] = field(default_factory=list)
    time_entries: list[tuple[int, int]] = field(default_factory=list)
    aborted: list[tuple[int, int, int, int]] = field(default_factory=list)
    producers: list[DumpedProducer] = field(default_factory=list)
    passed_sanity_check: bool = False
    is_empty: bool = False

    @property
    def records(self) -> list[DumpedRecord]:
        """The records of all batches, in order."""
        return [record for batch in self.batches for record in batch.records]


@dataclass(slots=True)
class Dump:
    """The output of one run of the tool."""

    files: list[DumpedFile] = field(default_factory=list)
    gaps: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """File → pairs of successive offsets with a gap between them."""
    complaints: list[str] = field(default_factory=list)

    def file(self, name_end: str) -> DumpedFile:
        """The one file whose path ends with `name_end`."""
        (found,) = [each for each in self.files if each.path.endswith(name_end)]
        return found


def parse_dump(stdout: str, stderr: str = "") -> Dump:
    """Parse the output of one run. Standard error lists gaps; every other line there is a complaint."""
    dump = Dump()
    current = DumpedFile("")
    for line in stdout.splitlines():
        if line.startswith("Dumping "):
            current = DumpedFile(line.removeprefix("Dumping "))
            dump.files.append(current)
        elif not HARMLESS.match(line) and not _take(line, current):
            dump.complaints.append(line)
    with_gaps = ""
    for line in stderr.splitlines():
        if line.startswith(GAPS_TITLE):
            with_gaps = line.removeprefix(GAPS_TITLE)
        elif gap := GAP.match(line):
            if int(gap[1]) < 0:
                continue  # the tool's message for a file that does not begin at offset 0
            dump.gaps.setdefault(with_gaps, []).append((int(gap[1]), int(gap[2])))
        elif line.strip():
            dump.complaints.append(line)
    return dump


def _take(line: str, into: DumpedFile) -> bool:
    """Add `line` to `into`; False if it is not a line of an undamaged file."""
    if match := DEEP_RECORD.match(line):
        into.batches[-1].records.append(_record(match))
    elif match := BATCH.match(line):
        into.batches.append(_batch(match))
        return match["valid"] == "true" and match["magic"] == "2"
    elif match := OFFSET_ENTRY.match(line):
        into.offset_entries.append((int(match[1]), int(match[2])))
    elif match := TIME_ENTRY.match(line):
        into.time_entries.append((int(match[1]), int(match[2])))
    elif match := ABORTED.match(line):
        into.aborted.append((int(match[1]), int(match[2]), int(match[3]), int(match[4])))
    elif match := PRODUCER.match(line):
        into.producers.append(_producer(match))
    elif line == f"{into.path} passed sanity check.":
        into.passed_sanity_check = True
    elif line == f"{into.path} is empty.":
        into.is_empty = True
    else:
        return False
    return True


def _record(match: re.Match[str]) -> DumpedRecord:
    printed = REST.match(match["rest"])
    return DumpedRecord(
        offset=int(match["offset"]),
        timestamp=int(match["timestamp"]),
        key_size=int(match["key_size"]),
        value_size=int(match["value_size"]),
        sequence=int(match["sequence"]),
        header_keys=tuple(match["headers"].split(",")) if match["headers"] else (),
        key=printed["key"] if printed else None,
        payload=printed["payload"] if printed else None,
        rest=match["rest"].strip(),
    )


def _batch(match: re.Match[str]) -> DumpedBatch:
    return DumpedBatch(
        base_offset=int(match["base_offset"]),
        last_offset=int(match["last_offset"]),
        count=int(match["count"]),
        base_sequence=int(match["base_sequence"]),
        last_sequence=int(match["last_sequence"]),
        producer_id=int(match["producer_id"]),
        producer_epoch=int(match["producer_epoch"]),
        leader_epoch=int(match["leader_epoch"]),
        is_transactional=match["transactional"] == "true",
        is_control=match["control"] == "true",
        delete_horizon_ms=_whole(match["delete_horizon_ms"]),
        position=int(match["position"]),
        time_type=match["time_type"],
        max_timestamp=int(match["max_timestamp"]),
        size=int(match["size"]),
        codec=match["codec"],
        crc=int(match["crc"]),
    )


def _producer(match: re.Match[str]) -> DumpedProducer:
    return DumpedProducer(
        producer_id=int(match["producer_id"]),
        producer_epoch=int(match["producer_epoch"]),
        coordinator_epoch=int(match["coordinator_epoch"]),
        current_txn_first_offset=_whole(match["first_offset"] or match["plain_offset"]),
        last_timestamp=int(match["timestamp"]),
        first_sequence=_whole(match["first_sequence"]),
        last_sequence=_whole(match["last_sequence"]),
        last_offset=_whole(match["last_offset"]),
        offset_delta=_whole(match["offset_delta"]),
        timestamp=_whole(match["last_timestamp"]),
    )


def _whole(text: str | None) -> int | None:
    return None if text is None else int(text)
