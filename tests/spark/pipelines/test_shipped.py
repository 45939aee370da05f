"""A pipeline's own modules, and what it ships."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.spark.pipelines.folders import write_pipeline

from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.resolution import prepared, wishes_of

FLOW = """\
from pricing_of_this_test import RATE
@dp.materialized_view
def rates():
    import pricing_of_this_test
    return spark.range(pricing_of_this_test.RATE)
"""


def test_pipeline_ships_what_its_files_name(tmp_path: Path) -> None:
    yml = "packages: [requests]\nsinks: {rows: {format: ottla_postgres, table: t}}\n"
    spec = write_pipeline(tmp_path, {"flows.py": "FORMAT = 'ottla_iceberg'\n"}, yml)
    wishes = wishes_of(spec)
    assert wishes.formats == ("ottla_iceberg", "ottla_postgres")
    assert wishes.packages == ("requests",)
    assert wishes.folder == tmp_path


def test_packages_must_be_names(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="packages must be a list of names such as"):
        write_pipeline(tmp_path, {"flows.py": ""}, "packages: requests\n")


def test_files_import_the_modules_of_their_folder(tmp_path: Path, spark: Any) -> None:
    spec = write_pipeline(tmp_path, {"flows.py": FLOW})
    (tmp_path / "pricing_of_this_test.py").write_text("RATE = 3\n")
    with prepared(spec, spark) as resolved:
        assert resolved.frames["rates"].count() == 3
    assert "pricing_of_this_test" not in sys.modules
    assert str(tmp_path) not in sys.path
