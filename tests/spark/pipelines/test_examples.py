"""The pipelines in examples/ do what their tests say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.cli.pipeline.test import read_cases, run_case
from ottla.spark.pipelines.spec import read_spec

EXAMPLES = sorted(path for path in (Path(__file__).parents[3] / "examples").iterdir() if path.is_dir())
QUICK = {"map"}


@pytest.mark.parametrize(
    "folder", [pytest.param(each, id=each.name, marks=() if each.name in QUICK else pytest.mark.slow) for each in EXAMPLES]
)
def test_example_passes_its_own_tests(folder: Path, spark: Any) -> None:
    spec = read_spec(folder)
    for case in read_cases(folder):
        assert run_case(spec, case, spark) == []
