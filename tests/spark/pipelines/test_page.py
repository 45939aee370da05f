"""docs/pipelines.md does what it says: its files are written and its commands run, in the order of the page."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.support.servers.ottla_cli import Said, run_cli

from ottla.testing import Broker

PAGE = Path(__file__).parents[3] / "docs" / "pipelines.md"
BLOCK = re.compile(r"(?:^`([^`\n]+)`\n\n)?^```(\w+)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
SKIPPED = ("pip install 'ottla[spark,java]'", "ottla up")
"""Set-up, which the test has done itself."""
EXCERPTS = {"yaml": "shop/ottla.yml", "python": "shop/transformations/large_orders.py"}
"""Blocks without a name show parts of files that `init` has written."""


def run_line(line: str) -> Said:
    words = shlex.split(line)
    stdin = b""
    if "<" in words:
        stdin = Path(words[words.index("<") + 1]).read_bytes()
        words = words[: words.index("<")]
    assert words[0] == "ottla"
    return run_cli(*words[1:], stdin=stdin)


@pytest.mark.slow
def test_every_block_of_the_page(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    said: dict[str, Said] = {}
    monkeypatch.chdir(tmp_path)
    with Broker() as broker:
        monkeypatch.setenv("OTTLA_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
        for name, kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
            if kind == "sh":
                for line in text.splitlines():
                    if line not in SKIPPED:
                        said[line] = run_line(line)
                        assert said[line].rc == 0, f"{line}\n{said[line].out}{said[line].err}"
            elif name:
                Path(name).parent.mkdir(parents=True, exist_ok=True)
                Path(name).write_text(text, encoding="utf-8")
            elif kind in EXCERPTS:
                written = Path(EXCERPTS[kind]).read_text(encoding="utf-8")
                missing = [line for line in text.splitlines() if line not in written.splitlines()]
                assert missing == [], f"{EXCERPTS[kind]} has no such lines"
    assert said["ottla pipeline test shop"].lines[-1] == "1 passed, 0 failed"
    assert '"id":2' in said["ottla consume large-orders --from-beginning --max-messages 2"].out
    assert "customers" in said["ottla pipeline describe shop"].out
    assert re.search(r"shop\s+orders\s+\d", said["ottla groups describe shop"].out)
    tables = sorted(path.name for path in (tmp_path / "shop" / "storage" / "ottla" / "tables").iterdir())
    assert tables == ["customers", "order_history"]
