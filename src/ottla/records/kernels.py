"""Which twin of the kernels is in use: compiled where the install could compile it, plain otherwise or where asked for.

`OTTLA_PURE=1` in the environment asks for the plain twin, for comparing and for debugging. It is read here, once, at import:
by then it must be known which module to load, and whoever could hand the answer down (`env/real`, the command line) is built
on top of modules that have imported theirs. That one read is the only thing in this room that touches the operating system,
and the import rules name it as the exception.

Everything else imports the kernels' names from here; the rooms above have a `kernels.py` of their own for theirs. `load_twin`
loads either twin under a name of its own, beside the one in use; the parity tests and the benchmark compare them that way.
"""

import os
import posixpath
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import TYPE_CHECKING

PURE_ASKED = os.environ.get("OTTLA_PURE", "") not in ("", "0")


def load_twin(name: str, *, plain: bool, room: str = "records") -> ModuleType | None:
    """The plain twin of a room's kernel, loaded anew from its source, or the compiled one: None where there is none."""
    if not plain:
        module = import_module(f"ottla.{room}.{name}")
        return module if is_compiled(module) else None
    folder = posixpath.dirname(posixpath.dirname(__file__))
    path = posixpath.join(folder, *room.split("."), f"{name}.py")
    spec = spec_from_file_location(f"ottla.{room}.{name}_plain", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path}, the plain twin of a compiled kernel, is missing: install Ottla again")
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
    from ottla.records.kernel_batch import BatchLimits, UsualBatch
    from ottla.records.kernel_columns import ColumnReader, ColumnWriter, RecordWalk, walk_records
else:
    _kernel = load_twin("kernel", plain=True)
    Headers, Record, RecordIterator, Row = _kernel.Headers, _kernel.Record, _kernel.RecordIterator, _kernel.Row
    encode_records, encode_rows = _kernel.encode_records, _kernel.encode_rows
    _columns = load_twin("kernel_columns", plain=True)
    ColumnReader, ColumnWriter, walk_records = _columns.ColumnReader, _columns.ColumnWriter, _columns.walk_records
    RecordWalk = _columns.RecordWalk
    _batch = load_twin("kernel_batch", plain=True)
    BatchLimits, UsualBatch = _batch.BatchLimits, _batch.UsualBatch

__all__ = [
    "PURE_ASKED",
    "BatchLimits",
    "ColumnReader",
    "ColumnWriter",
    "Headers",
    "Record",
    "RecordIterator",
    "RecordWalk",
    "Row",
    "UsualBatch",
    "encode_records",
    "encode_rows",
    "is_compiled",
    "load_twin",
    "variant",
    "walk_records",
]
