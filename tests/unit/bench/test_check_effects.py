"""docs/check.md: each warning of `ottla check` has a row with what it costs, or a reason why it was not shown."""

from __future__ import annotations

import re
from pathlib import Path

from bench.check_effects import BEGIN, EFFECTS, END, NOT_SHOWN

PAGE = (Path(__file__).parents[3] / "docs" / "check.md").read_text("utf-8")
WITHOUT_ROW = {
    "log-directories": "files of another user: what the row `user` measures",
    "disk-rate": "a figure; the warning beside it is that of `fsync`",
    "peer": "an error",
    "peer-rate": "a figure",
}


def test_each_warning_has_its_measured_effect_or_a_reason() -> None:
    before, _, rest = PAGE.partition(BEGIN)
    effects, _, after = rest.partition(END)
    rows = [line.split(" | ") for line in before.splitlines() if line.startswith("| `")]
    warnings = {name for row in rows if "warning" in row[2] for name in re.findall(r"`([a-z-]+)`", row[0])}
    assert len(warnings) > 20
    shown = {line.split("`")[1] for line in effects.splitlines() if line.startswith("| `")}
    assert warnings - shown - NOT_SHOWN.keys() - WITHOUT_ROW.keys() == set()
    assert shown & NOT_SHOWN.keys() == set()
    assert EFFECTS.keys() <= shown, "python -m bench.check_effects NAME --write docs/check.md"
    reasons = re.sub(r"\s+", " ", after)
    assert [name for name in NOT_SHOWN if f"`{name}`" not in reasons] == []
