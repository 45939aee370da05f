"""The examples of docs/schemas.md run, in their order, on one broker."""

import re
from pathlib import Path

import pytest

from ottla.schemas import SchemaRegistry
from ottla.testing import Broker

PAGE = Path(__file__).parents[3] / "docs" / "schemas.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)


def test_every_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker() as broker:
        for number, example in enumerate(EXAMPLES):
            text = example.replace("localhost:9092", broker.bootstrap_servers)
            text = text.replace("http://localhost:8081", broker.schema_registry_url)
            exec(compile(text, f"{PAGE.name}, example {number + 1}", "exec"), {"__name__": "example"})
        assert capsys.readouterr().out == "Ada\n"
        assert SchemaRegistry(broker.schema_registry_url).subjects() == ["orders-value"]
