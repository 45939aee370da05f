"""Runs the demo: on Spark where Java and PySpark are, else the broker's part with the reason. `--broker-only`: only that."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from tools.demo import broker_part
from tools.demo.processes import demo_folder

from ottla.errors import OttlaError

PNG = "ottla-demo.png"
BROKER_ONLY = "--broker-only"


def why_no_spark(arguments: list[str]) -> str | None:
    """Why the demo does not run on Spark, in words; None if it does."""
    if BROKER_ONLY in arguments:
        return f"{BROKER_ONLY} was given"
    try:
        import matplotlib  # noqa: F401
        import pyspark  # noqa: F401
    except ModuleNotFoundError as missing:
        return f"{missing.name} is not installed (make demo installs it if the package index can be reached)"
    from ottla.spark.java import find_java

    try:
        find_java()
    except OttlaError as error:
        return str(error)
    return None


def main() -> None:
    reason = why_no_spark(sys.argv[1:])
    try:
        with demo_folder() as folder:
            if reason is None:
                from tools.demo.spark_part import SparkDemo

                SparkDemo(folder, Path(PNG).resolve()).run()
            else:
                click.echo(f"Without Spark: {reason}. So here is the broker's part.")
                broker_part.Demo(folder / "data").run()
    except OttlaError as error:
        sys.exit(f"demo: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
