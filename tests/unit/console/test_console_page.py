"""The examples of docs/console.md: every block of YAML is a configuration file, or a part of one."""

import re
from pathlib import Path

import pytest

from ottla.console.config import parse_config

PAGE = (Path(__file__).parents[3] / "docs" / "console.md").read_text("utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_every_block_of_yaml_is_read(block: str) -> None:
    parse_config(block, "console.yaml")


def test_there_are_blocks() -> None:
    assert len(BLOCKS) >= 4
