"""Chooses the variant of the kernels: compiled where the install could compile them, pure otherwise or where asked for.

`OTTLA_PURE=1` in the environment asks for the pure variant, to compare and to debug. It is read here, once, at import: the
modules that could pass the answer down (`env/real`, the command line) are built on modules that have imported theirs by then.
This read is the only thing in this room that touches the operating system, and the import rules name it as the exception.

Everything else imports the kernels' names from here; the rooms above have a `kernels.py` of their own for theirs.
`load_variant` loads either variant beside the one in use; the parity tests and the benchmarks compare them that way.
"""

import os
import posixpath
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

PURE_ASKED = os.environ.get("OTTLA_PURE", "") not in ("", "0")


def load_variant(name: str, *, pure: bool, room: str = "records") -> ModuleType | None:
    """The pure variant of a room's kernel, loaded from its source again, or the compiled one: None where there is none."""
    if not pure:
        module = import_module(f"ottla.{room}.{name}")
        return module if is_compiled(module) else None
    from importlib.util import module_from_spec, spec_from_file_location  # late: only the pure variant needs it

    folder = posixpath.dirname(posixpath.dirname(__file__))
    path = posixpath.join(folder, *room.split("."), f"{name}.py")
    spec = spec_from_file_location(f"ottla.{room}.{name}_pure", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path}, the pure variant of a compiled kernel, is missing: install Ottla again")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def is_compiled(module: ModuleType) -> bool:
    """Whether `module` came from a compiled file."""
    return not str(module.__file__).endswith((".py", ".pyc"))


def variant() -> str:
    """Which kernels are in use, in words: `compiled` or `pure Python`. An install compiles all of them or none."""
    is_pure = PURE_ASKED or not is_compiled(import_module("ottla.records.kernel"))
    return "pure Python" if is_pure else "compiled"


if TYPE_CHECKING or not PURE_ASKED:
    from ottla.records.kernel import Headers, Record, RecordIterator, Row, encode_records, encode_rows
    from ottla.records.kernel_accumulate import (
        NO_HEADERS,
        BufferMemory,
        Delivery,
        OpenBatch,
        PlainSend,
        TopicBatches,
        pack_headers,
        record_size_max,
    )
    from ottla.records.kernel_batch import BatchLimits, CheckedBatch
    from ottla.records.kernel_columns import ColumnWriter, RecordScan, RecordWalk, new_buffers, walk_records
    from ottla.records.kernel_consume import ConsumerRecord, Deserializer, RecordDecoder
    from ottla.records.kernel_frames import plain_bytes_max
    from ottla.records.kernel_many import (
        BytesColumn,
        HeadersColumn,
        NumbersColumn,
        Places,
        RecordColumns,
        append_list,
    )
    from ottla.records.kernel_partition import murmur2, partition_of_key
else:
    _kernel = load_variant("kernel", pure=True)
    Headers, Record, RecordIterator, Row = _kernel.Headers, _kernel.Record, _kernel.RecordIterator, _kernel.Row
    encode_records, encode_rows = _kernel.encode_records, _kernel.encode_rows
    _columns = load_variant("kernel_columns", pure=True)
    ColumnWriter, walk_records = _columns.ColumnWriter, _columns.walk_records
    RecordScan, RecordWalk, new_buffers = _columns.RecordScan, _columns.RecordWalk, _columns.new_buffers
    _batch = load_variant("kernel_batch", pure=True)
    BatchLimits, CheckedBatch = _batch.BatchLimits, _batch.CheckedBatch
    plain_bytes_max = load_variant("kernel_frames", pure=True).plain_bytes_max
    _accumulate = load_variant("kernel_accumulate", pure=True)
    NO_HEADERS, pack_headers = _accumulate.NO_HEADERS, _accumulate.pack_headers
    BufferMemory, Delivery, OpenBatch = _accumulate.BufferMemory, _accumulate.Delivery, _accumulate.OpenBatch
    TopicBatches, record_size_max = _accumulate.TopicBatches, _accumulate.record_size_max
    PlainSend = _accumulate.PlainSend
    _consume = load_variant("kernel_consume", pure=True)
    ConsumerRecord, RecordDecoder = _consume.ConsumerRecord, _consume.RecordDecoder
    Deserializer = _consume.Deserializer
    _many = load_variant("kernel_many", pure=True)
    BytesColumn, HeadersColumn, NumbersColumn = _many.BytesColumn, _many.HeadersColumn, _many.NumbersColumn
    Places, RecordColumns, append_list = _many.Places, _many.RecordColumns, _many.append_list
    _partition = load_variant("kernel_partition", pure=True)
    murmur2, partition_of_key = _partition.murmur2, _partition.partition_of_key

__all__ = [
    "NO_HEADERS",
    "PURE_ASKED",
    "BatchLimits",
    "BufferMemory",
    "BytesColumn",
    "CheckedBatch",
    "ColumnWriter",
    "ConsumerRecord",
    "Delivery",
    "Deserializer",
    "Headers",
    "HeadersColumn",
    "NumbersColumn",
    "OpenBatch",
    "Places",
    "PlainSend",
    "Record",
    "RecordColumns",
    "RecordDecoder",
    "RecordIterator",
    "RecordScan",
    "RecordWalk",
    "Row",
    "TopicBatches",
    "append_list",
    "encode_records",
    "encode_rows",
    "is_compiled",
    "load_variant",
    "murmur2",
    "new_buffers",
    "pack_headers",
    "partition_of_key",
    "plain_bytes_max",
    "record_size_max",
    "variant",
    "walk_records",
]
