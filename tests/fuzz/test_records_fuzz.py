"""Mutated real batches through everything that strangers' bytes reach in the records room, in both variants of the kernels.

Only typed errors may come out, both variants must make the same of the same bytes, no input may take long, and memory stays
within what the caller allowed. The batches are Apache Kafka's (tests/golden/records); half of the mutants get a CRC that fits
again, so that they come past the first check. The mutants are the same in every run: `SEEDS` are what makes them.
"""

import random
import resource
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.logs.record_data import golden_answers, golden_batches, plain

from ottla.config.topic import LogConfig
from ottla.errors import CorruptRecords, KafkaError
from ottla.records import columns as columns_module
from ottla.records import reader as reader_module
from ottla.records.batch import BatchView, iterate_batches
from ottla.records.columns import columns_from_batches
from ottla.records.compression import Codec, decompress
from ottla.records.control import parse_control, parse_end_marker
from ottla.records.kernels import load_variant
from ottla.records.layout import HEADER_SIZE
from ottla.records.patch import set_crc
from ottla.records.produced import inspection as inspection_module
from ottla.records.produced import validate as validate_module
from ottla.records.produced.validate import validate_produced
from ottla.records.reader import read_records

SEEDS = range(4)
MUTANTS_PER_SEED = 2000
EXPANDED_BYTES_MAX = 1 << 20
CASE_SECONDS_MAX = 2.0
MEMORY_GROWTH_BYTES_MAX = 96 << 20
TYPED = (CorruptRecords, KafkaError)

# Wrong values for lengths and counts.
LIES = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**63 - 1, 2**63, 2**64 - 1]
CONFIGS = [
    LogConfig(),
    LogConfig(cleanup_policy=("compact",), message_timestamp_before_max_ms=10**9),
    LogConfig(compression_type="zstd", message_timestamp_type="LogAppendTime"),
    LogConfig(compression_type="uncompressed"),
]


def originals() -> list[bytes]:
    batches = [bytes.fromhex(row["bytes"]) for row in golden_batches().values()]
    produced = [bytes.fromhex(row["bytes"]) for row in golden_answers().values()]
    return [data for data in (*batches, *produced) if len(data) < 8000]


def mutated(chance: random.Random, original: bytes) -> bytearray:
    data = bytearray(original)
    for _ in range(chance.choice([1, 1, 1, 2, 3, 8])):
        if not data:
            break
        position = chance.randrange(min(len(data), HEADER_SIZE + 40)) if chance.random() < 0.7 else chance.randrange(len(data))
        kind = chance.randrange(6)
        if kind == 0:
            data[position] ^= 1 << chance.randrange(8)
        elif kind == 1:
            data[position] = chance.choice([0, 1, 0x7F, 0x80, 0xFF])
        elif kind == 2:
            width = chance.choice([2, 4, 8])
            lie = (chance.choice(LIES) & (2 ** (8 * width) - 1)).to_bytes(width, "big")
            data[position : position + width] = lie
        elif kind == 3:
            del data[position : position + chance.choice([1, 2, 7, 50])]
        elif kind == 4:
            data[position:position] = data[: chance.choice([1, 5, 100])]
        else:
            del data[position:]
    if chance.random() < 0.6 and len(data) >= HEADER_SIZE:
        data[8:12] = (len(data) - 12).to_bytes(4, "big")
        data[16] = 2
        set_crc(data, 0, len(data))
    return data


def everything(data: bytearray) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every function that a client's bytes reach, each with a comparable result."""
    raw = bytes(data)

    def views() -> Any:
        return [repr(view) for view in iterate_batches(raw)]

    def read() -> Any:
        view = BatchView(raw)
        return [plain(record) for record in read_records(view, decompressed_bytes_max=EXPANDED_BYTES_MAX)]

    def control() -> Any:
        found = []
        for record in read_records(BatchView(raw), decompressed_bytes_max=EXPANDED_BYTES_MAX):
            found.append(parse_control(record))
            found.append(parse_end_marker(record))
        return found

    def columns() -> Any:
        return columns_from_batches([BatchView(raw)] * 2, decompressed_bytes_max=EXPANDED_BYTES_MAX)

    def judged(config: LogConfig) -> Any:
        found = validate_produced(
            bytearray(data), config, now_ms=1_700_000_000_000, partition="t-0", decompressed_bytes_max=EXPANDED_BYTES_MAX
        )
        return bytes(found.data), found.max_timestamp, found.append_time_ms

    yield "views", views
    yield "check", lambda: BatchView(raw).check()
    yield "read", read
    yield "control", control
    yield "columns", columns
    for index, config in enumerate(CONFIGS):
        yield f"validate-{index}", lambda config=config: judged(config)
    for codec in Codec:
        yield f"decompress-{codec.title}", lambda codec=codec: decompress(codec, raw[HEADER_SIZE:], EXPANDED_BYTES_MAX)


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except TYPED as problem:
        return type(problem).__name__, str(problem)


@pytest.fixture(scope="module")
def variants() -> list[tuple[Any, Any]]:
    found = [(load_variant("kernel", pure=pure), load_variant("kernel_columns", pure=pure)) for pure in (True, False)]
    return [(kernel, columns) for kernel, columns in found if kernel is not None and columns is not None]


def with_variant(variant: tuple[Any, Any], patch: pytest.MonkeyPatch) -> None:
    kernel, columns = variant
    patch.setattr(reader_module, "RecordIterator", kernel.RecordIterator)
    patch.setattr(validate_module, "RecordScan", columns.RecordScan)
    for module in (validate_module, inspection_module):
        patch.setattr(module, "RecordWalk", columns.RecordWalk)
    patch.setattr(columns_module, "walk_records", columns.walk_records)
    patch.setattr(columns_module, "ColumnWriter", columns.ColumnWriter)


def run(data: bytearray, variant: tuple[Any, Any]) -> dict[str, Any]:
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        with_variant(variant, patch)
        for name, call in everything(data):
            began = time.process_time()
            try:
                found[name] = outcome(call)
            except Exception as surprise:
                raise AssertionError(f"{name} of {data.hex()} raised {surprise!r}, not a typed error") from surprise
            assert time.process_time() - began < CASE_SECONDS_MAX, f"{name} of {data.hex()} took too long"
    return found


def memory_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@pytest.mark.parametrize("seed", SEEDS)
def test_mutants_give_typed_errors_the_same_in_both_variants(seed: int, variants: list[tuple[Any, Any]]) -> None:
    chance = random.Random(seed)
    sources = originals()
    before = memory_bytes()
    refused = accepted = 0
    for _ in range(MUTANTS_PER_SEED):
        data = mutated(chance, chance.choice(sources))
        outcomes = [run(data, variant) for variant in variants]
        assert all(found == outcomes[0] for found in outcomes), f"the variants differ on {data.hex()}"
        if isinstance(outcomes[0]["read"], list):
            accepted += 1
        else:
            refused += 1
    # If the first check refused all mutants, or none, the test would prove nothing.
    assert refused > MUTANTS_PER_SEED // 10
    assert accepted > MUTANTS_PER_SEED // 50
    assert memory_bytes() - before < MEMORY_GROWTH_BYTES_MAX


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_mutated_streams_give_typed_errors(codec: Codec) -> None:
    chance = random.Random(int(codec))
    streams = [
        bytes(BatchView(bytes.fromhex(row["bytes"])).payload)
        for row in golden_batches().values()
        if row["batches"][0]["codec"] == codec.title
    ]
    before = memory_bytes()
    for _ in range(1500):
        data = mutated(chance, chance.choice(streams)[:4000])
        began = time.process_time()
        outcome(lambda data=data: decompress(codec, data, EXPANDED_BYTES_MAX))
        assert time.process_time() - began < CASE_SECONDS_MAX
    assert memory_bytes() - before < MEMORY_GROWTH_BYTES_MAX
