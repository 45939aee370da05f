"""What `import ottla.spark` changes in PySpark: modes of writers, texts of errors, and garbage collection in Python workers.

Spark decides about modes in its JVM before a Python data source is asked. It refuses its own default, `errorifexists`, and
`outputMode("update")`. So a few methods of PySpark's writers, classic and Spark Connect, are wrapped. Writers of all other
formats do what they did.

- `df.write`: no mode, `error` and `errorifexists` append. `overwrite` and `ignore` raise a sentence.
- `writeStream.outputMode("update")`: `start()` writes each batch with foreachBatch, at least once.

Errors are wrapped too: a Python of Spark's that has no Ottla cannot say what to install, and Java's stack trace behind a
sentence of ours helps nobody.

Spark's daemon forks a process, runs tasks or plans in it one after the other, and calls `gc.collect()` after each. With Spark,
Arrow and Ottla imported such a collection walks 55,000 objects and finds almost nothing. A micro-batch from topic to topic runs
in four of these processes. After the first collections everything that is left moves to the collector's permanent generation
(`gc.freeze`), which later ones do not walk (docs/decisions/0023).
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from functools import wraps
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from ottla.spark.errors import SparkOptionError, own_message

FORMAT = "ottla"
APPENDING = ("append", "error", "errorifexists", "default")
BATCH_WRITERS = ("pyspark.sql.readwriter", "pyspark.sql.connect.readwriter")
STREAM_WRITERS = ("pyspark.sql.streaming.readwriter", "pyspark.sql.connect.streaming.readwriter")
CONNECT_ERRORS, CLASSIC_ERRORS = "pyspark.errors.exceptions.connect", "pyspark.errors.exceptions.captured"
_DONE = "_ottla_modes"
_ONCE = (
    'outputMode("update") writes to topics at least once: leave out exactlyOnce, or use outputMode("append") with a watermark'
)


def install() -> None:
    """Wrap the writers and errors: those that are imported now, the others when they are."""
    later = []
    for name in (*BATCH_WRITERS, *STREAM_WRITERS, CONNECT_ERRORS, CLASSIC_ERRORS):
        if name in sys.modules:
            _wrap(sys.modules[name])
        else:
            later.append(name)
    if later and not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder(later))


class _Finder:
    """Wraps the writers of a module of PySpark after its import, so that `import ottla.spark` need not import PySpark."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in self._names:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_wrap(module: ModuleType) -> None:
            execute(module)
            _wrap(module)

        spec.loader.exec_module = execute_and_wrap  # type: ignore[method-assign]  # a loader serves one module
        return spec


def _wrap(module: ModuleType) -> None:
    wrap, name = _WRAPS[module.__name__]
    kind = getattr(module, name, None)
    if kind is None or _DONE in vars(kind):  # None: its import is under way in another thread
        return
    setattr(kind, _DONE, True)
    wrap(kind)


def _is_ours(source: str | None) -> bool:
    return source is not None and source.lower() == FORMAT


def _wrap_batch_writer(kind: Any) -> None:
    set_format, set_mode = kind.format, kind.mode

    def settle(writer: Any) -> None:
        """Translate the mode, once format and mode may both be known."""
        wished = getattr(writer, "_ottla_mode", None)
        is_ours = _is_ours(getattr(writer, "_ottla_format", None))
        if is_ours and wished is not None and wished.lower() not in APPENDING:
            done = "empty a topic" if wished.lower() == "overwrite" else "be used with a topic, which takes rows at any time"
            raise SparkOptionError(f'mode("{wished}") cannot {done}: write with mode("append"), or without a mode')
        if is_ours or getattr(writer, "_ottla_translated", False):
            set_mode(writer, "append" if is_ours else wished or "errorifexists")
        writer._ottla_translated = is_ours

    @wraps(set_format)
    def format(self: Any, source: str) -> Any:
        found = set_format(self, source)
        self._ottla_format = source
        settle(self)
        return found

    @wraps(set_mode)
    def mode(self: Any, saveMode: str | None) -> Any:
        found = set_mode(self, saveMode)
        if isinstance(saveMode, str):
            self._ottla_mode = saveMode
            settle(self)
        return found

    kind.format, kind.mode = format, mode


def _wrap_stream_writer(kind: Any) -> None:
    set_format, set_output_mode, set_option, set_options, begin = (
        kind.format,
        kind.outputMode,
        kind.option,
        kind.options,
        kind.start,
    )

    def remembered(writer: Any) -> dict[str, Any]:
        return vars(writer).setdefault("_ottla_options", {})  # type: ignore[no-any-return]

    @wraps(set_format)
    def format(self: Any, source: str) -> Any:
        self._ottla_format = source
        return set_format(self, source)

    @wraps(set_output_mode)
    def output_mode(self: Any, outputMode: str) -> Any:
        self._ottla_mode = outputMode
        return set_output_mode(self, outputMode)

    @wraps(set_option)
    def option(self: Any, key: str, value: Any) -> Any:
        remembered(self)[key] = value
        return set_option(self, key, value)

    @wraps(set_options)
    def options(self: Any, **options: Any) -> Any:
        remembered(self).update(options)
        return set_options(self, **options)

    @wraps(begin)
    def start(self: Any, path: Any = None, format: Any = None, outputMode: Any = None, *rest: Any, **more: Any) -> Any:
        source = format or getattr(self, "_ottla_format", None)
        mode = outputMode or getattr(self, "_ottla_mode", None)
        if not (_is_ours(source) and isinstance(mode, str) and mode.lower() == "update"):
            return begin(self, path, format, outputMode, *rest, **more)
        named = {name: value for name, value in more.items() if name not in ("partitionBy", "queryName")}
        self.foreachBatch(update_batches({**remembered(self), **named}))
        return begin(self, path, None, outputMode, *rest, **more)

    kind.format, kind.outputMode, kind.option, kind.options, kind.start = format, output_mode, option, options, start


def _wrap_error(kind: Any) -> None:
    begin = kind.__init__

    @wraps(begin)
    def init(self: Any, message: str | None = None, *rest: Any, **more: Any) -> None:
        ours = None if message is None else own_message(message)
        begin(self, ours or message, *rest, **more)
        if ours is not None:
            self._display_stacktrace = False  # that of the server's Java

    kind.__init__ = init


def _wrap_captured(kind: Any) -> None:
    module = sys.modules[CLASSIC_ERRORS]
    convert = module.convert_exception

    @wraps(convert)
    def converted(error: Any) -> Any:
        found = convert(error)
        if not isinstance(found, kind):
            return found  # Spark has a class for it, and shows it without Java's stack trace
        ours = own_message(str(error.getMessage()))
        return found if ours is None else module.AnalysisException(ours, "")

    module.convert_exception = converted  # type: ignore[attr-defined]


_WRAPS = {
    **dict.fromkeys(BATCH_WRITERS, (_wrap_batch_writer, "DataFrameWriter")),
    **dict.fromkeys(STREAM_WRITERS, (_wrap_stream_writer, "DataStreamWriter")),
    CONNECT_ERRORS: (_wrap_error, "SparkConnectGrpcException"),
    CLASSIC_ERRORS: (_wrap_captured, "UnknownException"),
}
"""Module → what wraps a class of it, and the class."""


def update_batches(options: dict[str, Any]) -> Any:
    """A function for foreachBatch that writes the rows of a batch to topics, with the options of the stream's sink."""
    from ottla.spark.tables.each_batch import each_batch

    known = {name: value for name, value in options.items() if name.lower() != "checkpointlocation" and value is not None}
    if any(name.lower() == "exactlyonce" and str(value).lower() == "true" for name, value in known.items()):
        raise SparkOptionError(_ONCE)
    return each_batch(FORMAT, **known)


DAEMON = "pyspark.daemon"
FREEZES = 2
"""The first collection may come amid imports. Few, because cycles that become garbage after a freeze are never freed."""

_left = FREEZES


def spare_loaded_objects() -> None:
    """In a process that Spark's daemon has forked, freeze what the first collections leave. Elsewhere do nothing."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name == DAEMON and _freeze_survivors not in gc.callbacks:
        gc.callbacks.append(_freeze_survivors)


def _freeze_survivors(phase: str, info: dict[str, Any]) -> None:
    global _left
    if phase != "stop" or info["generation"] < 2:
        return
    _left -= 1
    gc.freeze()
    if _left <= 0:
        gc.callbacks.remove(_freeze_survivors)
