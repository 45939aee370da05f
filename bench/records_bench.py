"""Speed of encoding and decoding record batches, compared with aiokafka's compiled codec and kafka-python's in the same run.

    python -m bench.records_bench [--json] [--quick]

Each row is one batch of about 100 KB. All libraries get the same records and must encode them to the same bytes (checked before
the measurement, for rows without compression), and all decode the same bytes. Measured are:

    encode         (timestamp, key, value, headers) of every record in, one finished batch with its CRC out
    decode         every record created, and each of its fields read once, as a consumer does
    decode, list   every record created and kept in a list, no field read (Ottla decodes headers only when they are read)

Compressed rows use the codecs that each library finds installed; kafka-python is left out where it finds none. The last part is
Ottla alone: the cost of validating a batch of 16 KB, and of converting batches to columns and back.
The exit code is 1 if the compiled variant is slower than aiokafka in a row without compression: encode, or decode.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import aiokafka.record._crecords as aiokafka_compiled
from aiokafka.errors import UnsupportedCodecError as AiokafkaLacksCodec
from bench.timing import per_call_seconds
from kafka.errors import UnsupportedCodecError as KafkaPythonLacksCodec
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

from ottla.config.topic import LogConfig
from ottla.records.batch import BatchView
from ottla.records.builder import build_produce_batch, seal
from ottla.records.columns import columns_from_batches
from ottla.records.compression import Codec, decompress
from ottla.records.kernels import Row, load_variant, walk_records
from ottla.records.layout import CRC_AT, HEADER_SIZE
from ottla.records.produced.validate import validate_produced

BATCH_BYTES = 100_000
NOW_MS = 1_700_000_000_000
HEADERS = (("trace", b"0123456789abcdef"), ("content-type", b"application/json"))
Calls = dict[str, Callable[[], Any]]
OTTLA, PLAIN, AIOKAFKA, KAFKA_PYTHON = "ottla", "ottla, plain", "aiokafka", "kafka-python"


@dataclass(frozen=True)
class Shape:
    """The records of one row."""

    value_bytes: int
    has_headers: bool
    codec: Codec

    @property
    def title(self) -> str:
        parts = [f"{self.value_bytes} B", "2 headers" if self.has_headers else "", self.codec.title if self.codec else ""]
        return ", ".join(part for part in parts if part)

    def rows(self) -> list[Row]:
        count = BATCH_BYTES // self.value_bytes
        pattern = bytes(range(32, 127)) * (self.value_bytes // 95 + 2)
        headers = HEADERS if self.has_headers else ()
        return [
            (NOW_MS + index, b"key-%d" % index, pattern[index % 95 :][: self.value_bytes], headers) for index in range(count)
        ]


SHAPES = [
    Shape(100, False, Codec.NONE),
    Shape(100, True, Codec.NONE),
    Shape(1000, False, Codec.NONE),
    Shape(1000, True, Codec.NONE),
    Shape(100, False, Codec.GZIP),
    Shape(100, False, Codec.LZ4),
    Shape(100, False, Codec.ZSTD),
]


def encoders(shape: Shape, rows: list[Row]) -> Calls:
    codec = int(shape.codec)
    lists = [(timestamp, key, value, list(headers)) for timestamp, key, value, headers in rows]

    def by_peer(builder_class: Any) -> Any:
        builder = builder_class(2, codec, 0, -1, -1, -1, 1 << 30)
        append = builder.append
        for offset, (timestamp, key, value, headers) in enumerate(lists):
            append(offset, timestamp, key, value, headers)
        return builder.build()

    def by_kernel(kernel: Any) -> bytearray:
        batch = bytearray(HEADER_SIZE)
        end, largest = kernel.encode_rows(batch, HEADER_SIZE, rows, rows[0][0])
        seal(batch, end, None, (0, -1, codec, len(rows) - 1, rows[0][0], largest), (-1, -1, -1, len(rows)))
        return batch

    plain = load_variant("kernel", pure=True)
    return {
        OTTLA: lambda: build_produce_batch(rows, codec=shape.codec),
        PLAIN: lambda: by_kernel(plain),
        AIOKAFKA: lambda: by_peer(aiokafka_compiled.DefaultRecordBatchBuilder),
        KAFKA_PYTHON: lambda: by_peer(KafkaPythonBuilder),
    }


def use(records: Any) -> None:
    for record in records:
        record.offset, record.timestamp, record.key, record.value, record.headers  # noqa: B018 - reading them is the work


def decoders(shape: Shape, batch: bytes) -> Calls:
    """Functions that return an iterator over the records, by library."""

    def by_kernel(kernel: Any) -> Any:
        view = BatchView(batch)
        payload = decompress(shape.codec, view.payload, 1 << 27) if shape.codec else batch
        start = 0 if shape.codec else HEADER_SIZE
        return kernel.RecordIterator(payload, start, len(payload), view.count, view.base_offset, view.base_timestamp, None)

    plain, compiled = load_variant("kernel", pure=True), load_variant("kernel", pure=False)
    return {
        OTTLA: lambda: by_kernel(compiled or plain),
        PLAIN: lambda: by_kernel(plain),
        AIOKAFKA: lambda: aiokafka_compiled.DefaultRecordBatch(batch),
        KAFKA_PYTHON: lambda: KafkaPythonBatch(batch),
    }


def usable(calls: Calls) -> Calls:
    """The calls whose codec is installed."""
    found = {}
    for name, call in calls.items():
        try:
            call()
        except (KafkaPythonLacksCodec, AiokafkaLacksCodec) as problem:
            print(f"  ({name} is left out: {problem})", file=sys.stderr)
            continue
        found[name] = call
    return found


def check_same(shape: Shape, rows: list[Row], encode: Calls, decode: Calls) -> None:
    """Check that all libraries make the same bytes and read the same records."""
    ours = bytes(encode[OTTLA]())
    for name, call in encode.items():
        if shape.codec is Codec.NONE:  # from the CRC on: kafka-python writes another leader epoch, which requests ignore
            assert bytes(call())[CRC_AT:] == ours[CRC_AT:], f"{name} encodes different bytes"
    for name, call in decode.items():
        found = [(one.timestamp, one.key, one.value, tuple(one.headers)) for one in call()]
        assert found == rows, f"{name} decodes different records"


def measure(shape: Shape, rounds: int) -> list[dict[str, Any]]:
    rows = shape.rows()
    encode = usable(encoders(shape, rows))
    batch = bytes(encode[OTTLA]())
    decode = usable({name: lambda make=make: use(make()) for name, make in decoders(shape, batch).items()})
    kept = {name: lambda make=make: list(make()) for name, make in decoders(shape, batch).items() if name in decode}
    check_same(shape, rows, encode, {name: make for name, make in decoders(shape, batch).items() if name in decode})
    found = []
    for what, calls in (("encode", encode), ("decode", decode), ("decode, list", kept)):
        seconds = per_call_seconds(calls, rounds=rounds)
        found.append(
            {
                "what": what,
                "records": shape.title,
                "ns_per_record": {name: taken / len(rows) * 1e9 for name, taken in seconds.items()},
                "ottla_to_aiokafka": seconds[AIOKAFKA] / seconds[OTTLA],
                "compressed": shape.codec is not Codec.NONE,
            }
        )
    return found


def measure_ours(rounds: int) -> dict[str, float]:
    """Microseconds per batch of 16 KB, of 100 B records: validation in the broker, and columns for dataframes."""
    rows = Shape(100, False, Codec.NONE).rows()[:150]
    batch, packed = build_produce_batch(rows), build_produce_batch(rows, codec=Codec.ZSTD)
    view, config, compacted = BatchView(bytes(batch)), LogConfig(), LogConfig(cleanup_policy=("compact",))

    def judge(data: bytearray, settings: LogConfig) -> object:
        return validate_produced(data, settings, now_ms=NOW_MS, partition="topic-0")

    calls: dict[str, Callable[[], object]] = {
        "view and CRC": lambda: BatchView(batch).check(),
        "walk of 150 records": lambda: walk_records(view.payload, 0, len(view.payload), view.count, view.base_timestamp),
        "validate": lambda: judge(batch, config),
        "validate, zstd": lambda: judge(packed, config),
        "validate, zstd, compacted topic": lambda: judge(packed, compacted),
        "batch to columns": lambda: columns_from_batches([view]),
    }
    return {name: taken * 1e6 for name, taken in per_call_seconds(calls, rounds=rounds).items()}


def print_table(rows: list[dict[str, Any]], ours: dict[str, float]) -> None:
    names = [OTTLA, PLAIN, AIOKAFKA, KAFKA_PYTHON]
    print("nanoseconds per record".ljust(34), *(name.rjust(13) for name in names), "ottla : aiokafka".rjust(18))
    for row in rows:
        cells = [f"{row['ns_per_record'][name]:.0f}" if name in row["ns_per_record"] else "-" for name in names]
        title = f"{row['what']}: {row['records']}"
        print(title.ljust(34), *(cell.rjust(13) for cell in cells), f"{row['ottla_to_aiokafka']:.2f} x".rjust(18))
    print("\nmicroseconds per 16 KB batch (Ottla alone)")
    for name, taken in ours.items():
        print(f"  {name}".ljust(34), f"{taken:.1f}".rjust(13))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    options = parser.parse_args()
    rounds = 3 if options.quick else 9
    rows = [row for shape in SHAPES for row in measure(shape, rounds)]
    ours = measure_ours(rounds)
    decisive = [row for row in rows if not row["compressed"] and row["what"] in ("encode", "decode")]
    ratio = statistics.geometric_mean(row["ottla_to_aiokafka"] for row in decisive)
    is_compiled = load_variant("kernel", pure=False) is not None
    if options.json:
        print(json.dumps({"compiled": is_compiled, "rows": rows, "ottla_us_per_16kb_batch": ours, "ottla_to_aiokafka": ratio}))
    else:
        print_table(rows, ours)
        print(
            f"\nwithout compression, encode and decode together: {ratio:.2f} x aiokafka"
            + ("" if is_compiled else " (not compiled)")
        )
    return 0 if not is_compiled or all(row["ottla_to_aiokafka"] >= 1.0 for row in decisive) else 1


if __name__ == "__main__":
    sys.exit(main())
