"""Pipelines for tests: writes a folder from texts."""

from __future__ import annotations

from pathlib import Path

from ottla.spark.pipelines.spec import Spec, read_spec

SPEC = """\
name: shop
storage: storage
libraries: [{{glob: {{include: transformations/**}}}}]
configuration: {{kafka.bootstrap.servers: "{servers}"}}
"""
CONNECTIONS = "from ottla.spark.pipelines import declare_connections\ndeclare_connections()\n"
FLOWS_HEAD = "from pyspark import pipelines as dp\nfrom pyspark.sql import SparkSession\nspark = SparkSession.active()\n"


def write_pipeline(folder: Path, files: dict[str, str], ottla: str = "", servers: str = "localhost:9092") -> Spec:
    """A pipeline with these files in `transformations/`; Python files get the usual imports."""
    (folder / "transformations").mkdir(parents=True, exist_ok=True)
    (folder / "spark-pipeline.yml").write_text(SPEC.format(servers=servers))
    if ottla:
        (folder / "ottla.yml").write_text(ottla)
        (folder / "transformations" / "connections.py").write_text(CONNECTIONS)
    for name, text in files.items():
        (folder / "transformations" / name).write_text(FLOWS_HEAD + text if name.endswith(".py") else text)
    return read_spec(folder)
