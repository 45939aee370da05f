"""docs/pipelines-in-production.md: its commands exist, its YAML can be read, its metrics are those of the page."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
import yaml
from tests.spark.pipelines.test_metrics import followed

from ottla.cli.main import ottla

PAGE = (Path(__file__).parents[3] / "docs" / "pipelines-in-production.md").read_text(encoding="utf-8")
MANIFESTS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
IN_YAML = [
    shlex.join(yaml.safe_load(words)) for words in re.findall(r"^ *command: (\[.*\])$", "".join(MANIFESTS), flags=re.MULTILINE)
]
COMMANDS = sorted({*re.findall(r"\bottla (?:pipeline|groups) [^`\"\n]*[^`\"\s]", PAGE), *IN_YAML})


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_parses(line: str) -> None:
    command: click.Command = ottla
    words = shlex.split(line)[1:]
    context = click.Context(command)
    while isinstance(command, click.Group):
        found = command.get_command(context, words[0])
        assert found is not None, line
        command, context = found, click.Context(found, parent=context, info_name=words[0])
        words = words[1:]
    command.make_context(context.info_name, words, parent=context.parent)


def test_manifests_and_metrics_are_what_they_say() -> None:
    assert [yaml.safe_load(text)["kind"] for text in MANIFESTS] == ["CronJob", "Deployment"]
    assert len(IN_YAML) == 2
    served = set(re.findall(r"^# TYPE (\S+)", followed()[0].text().decode(), flags=re.MULTILINE))
    rows: list[str] = re.findall(r"^\| (`ottla_pipeline_.*?) \|", PAGE, flags=re.MULTILINE)
    named: set[str] = set()
    for row in rows:
        first, *others = re.findall(r"`(\w+)`", row)
        named.add(first)
        named |= {
            next(name for name in served if name.startswith("ottla_pipeline_") and name.endswith(other)) for other in others
        }
    assert named == served
