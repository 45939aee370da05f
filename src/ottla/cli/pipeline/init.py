"""`ottla pipeline init`."""

from __future__ import annotations

from pathlib import Path

import click

from ottla.cli.common.output import say
from ottla.cli.common.settings import DEFAULT_BOOTSTRAP, ENVIRONMENT_VARIABLE
from ottla.cli.pipeline.template import files_of
from ottla.spark.pipelines.errors import PipelineError

EXAMPLES = """\b
Examples:
  ottla pipeline init orders
  ottla pipeline init orders -b kafka-1:9092
"""


@click.command("init", epilog=EXAMPLES)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "-b",
    "--bootstrap-server",
    "bootstrap_server",
    envvar=ENVIRONMENT_VARIABLE,
    default=DEFAULT_BOOTSTRAP,
    metavar="HOST:PORT,…",
    help=f"The cluster that it uses.  [default: ${ENVIRONMENT_VARIABLE}, or {DEFAULT_BOOTSTRAP}]",
)
def init(folder: Path, bootstrap_server: str) -> None:
    """Write a working pipeline to FOLDER: it keeps the large orders of a topic, and has a test."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PipelineError(f"{folder} is not empty: choose another folder, or delete it first")
    for name, text in files_of(folder.resolve().name, folder.resolve(), bootstrap_server).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        say(f"  {path}")
    say(f"Wrote a pipeline to {folder}. Try it:")
    for line in (
        f"ottla pipeline test {folder}",
        "ottla topics create orders large-orders orders-dead",
        f"ottla pipeline run {folder}",
    ):
        say(f"  {line}")
