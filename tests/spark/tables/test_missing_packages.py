"""Packages that are not installed: one sentence says which extra has them, and the formats can be looked up all the same."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

from ottla.spark.decoding.decode import decoder_for
from ottla.spark.errors import SparkOptionError
from ottla.spark.tables.delta import DeltaTarget
from ottla.spark.tables.iceberg import IcebergTarget
from ottla.spark.tables.postgres.sink import PostgresTarget

SCHEMA = pa.schema([("id", pa.int64())])


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("deltalake", "pyiceberg.catalog", "psycopg", "fastavro"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SparkOptionError, match=r"Delta tables need the package deltalake: pip install 'ottla\[delta\]'"):
        DeltaTarget("x", SCHEMA).prepare()
    with pytest.raises(SparkOptionError, match=r"Iceberg tables need the package pyiceberg: pip install 'ottla\[iceberg\]'"):
        IcebergTarget("shop.orders", SCHEMA).prepared()
    with pytest.raises(SparkOptionError, match=r"PostgreSQL needs the package psycopg: pip install 'ottla\[postgres\]'"):
        PostgresTarget("postgresql://localhost/x", "t", (("id", "bigint"),)).prepare()
    with pytest.raises(SparkOptionError, match=r"Avro needs the package fastavro: pip install 'ottla\[spark\]'"):
        decoder_for("avro", "value", "long", None, {})


def test_looking_the_formats_up_loads_none_of_them() -> None:
    """Spark imports every module named pyspark_* to find one format: an import that fails would lose all of them."""
    modules = ["pyspark_ottla", "pyspark_ottla_postgres", "pyspark_ottla_delta", "pyspark_ottla_iceberg"]
    packages = ["psycopg", "deltalake", "pyiceberg", "fastavro"]
    check = f"assert not set({packages}) & set(sys.modules); print(pyspark_ottla_delta.DefaultSource.name())"
    script = f"import sys, {', '.join(modules)}; {check}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "ottla_delta\n"), done.stderr
