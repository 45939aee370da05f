"""The file with the plan: as an argument, or in Kafka's spelling."""

import click
import pytest

from ottla.cli.reassign.command import plan_path


def test_one_file_is_named() -> None:
    assert plan_path("a.json", None, "verify") == "a.json"
    assert plan_path(None, "b.json", "verify") == "b.json"
    for both in ((None, None), ("a", "b")):
        with pytest.raises(click.UsageError, match="ottla reassign verify "):
            plan_path(*both, "verify")
