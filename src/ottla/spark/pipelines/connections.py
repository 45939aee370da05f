"""`declare_connections()`: makes the sources and sinks of `ottla.yml` known to the pipeline that is being defined.

A Python file of the pipeline calls it, so the pipeline is the same under `ottla pipeline run` and `spark-pipelines run`. That
file must be the first of the libraries: Spark takes the target of a flow for a table unless it knows a sink of that name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from ottla.spark.pipelines.spec import SPEC_NAMES, Connection, Spec, read_spec

_being_loaded: ContextVar[Spec | None] = ContextVar("ottla_pipeline_being_loaded", default=None)
"""The pipeline whose files are being loaded by us: its settings may differ from its file (`--bootstrap-server`)."""


@contextmanager
def loading(spec: Spec) -> Iterator[None]:
    """While this lasts, `declare_connections` declares the connections of `spec`."""
    token = _being_loaded.set(spec)
    try:
        yield
    finally:
        _being_loaded.reset(token)


def pipeline_in_use() -> Spec | None:
    """The pipeline whose files are being loaded; the one of the working directory, as under spark-pipelines; or None."""
    found = _being_loaded.get()
    if found is None and any((Path.cwd() / name).is_file() for name in SPEC_NAMES):
        found = read_spec(Path.cwd())
    return found


def declare_connections() -> None:
    """Declare a temporary view for each source and a sink for each sink of `ottla.yml`, in the folder of the pipeline."""
    from pyspark import pipelines as dp

    spec = _being_loaded.get() or read_spec(Path.cwd())
    for source in spec.sources:
        dp.temporary_view(name=source.name)(_reader(source, spec))
    for sink in spec.sinks:
        dp.create_sink(sink.name, sink.format, with_address(sink, spec))


def with_address(connection: Connection, spec: Spec) -> dict[str, str]:
    """The options of a connection; topics get the address and the other client settings of the configuration as defaults."""
    if connection.format != "ottla":
        return dict(connection.options)
    has_schemas = any(name in connection.options for name in ("value.format", "key.format"))
    return spec.client_options | (spec.registry_options if has_schemas else {}) | connection.options


def _reader(source: Connection, spec: Spec) -> Callable[[], Any]:
    options = with_address(source, spec)

    def read() -> Any:
        from pyspark.sql import SparkSession

        spark: Any = SparkSession.getActiveSession()
        reader = spark.readStream if source.is_streaming else spark.read
        reader = reader.format(source.format).options(**options)
        return (reader if source.schema is None else reader.schema(source.schema)).load()

    read.__name__ = source.name
    return read
