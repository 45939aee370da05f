"""The examples of docs/from-*.md run to their end, and what the pages name exists."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.compat.client.clients_page import ADDRESS, title
from tests.support.servers.kafka_server import HANG_S

import ottla.errors
from ottla import Admin, Consumer, ConsumerRecord, Delivery, Producer, Results, aio
from ottla.testing import Broker

DOCS = Path(__file__).parents[3] / "docs"
PAGES = sorted(DOCS.glob("from-*.md"))
EXAMPLES = [
    pytest.param(block, id=f"{page.stem}-{number}-{title(block)}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL))
]


def test_there_is_a_page_for_each_client() -> None:
    assert [page.stem for page in PAGES] == ["from-aiokafka", "from-confluent-kafka", "from-kafka-python"]


def test_examples_of_the_pages(tmp_path: Path) -> None:
    """All in one process, on one broker, but each with its own names: a process for each would take ten times as long."""
    with Broker() as broker:
        for number, parameters in enumerate(EXAMPLES):
            (example,) = parameters.values
            assert isinstance(example, str)
            topic, group, other = f"orders-{number}", f"billing-{number}", f"payments-{number}"
            broker.create_topic(topic, partitions=3)
            for table in range(9):
                broker.produce(topic, json.dumps({"table": table}), partition=table % 3)
            text = example.replace(ADDRESS, f'"{broker.bootstrap_servers}"')
            for word, own in (("orders", topic), ("billing", group), ("payments", other)):
                text = text.replace(f'"{word}"', f'"{own}"')
            (tmp_path / f"example_{number:02}.py").write_text(text, encoding="utf-8")
        names = ", ".join(f"'example_{number:02}.py'" for number in range(len(EXAMPLES)))
        program = f"import runpy\nfor name in ({names}): print(name); runpy.run_path(name)\n"
        command = [sys.executable, "-W", "error", "-c", program]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == "", "an example must not make a client warn"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_on_our_side_of_the_tables_exist(page: Path) -> None:
    """Methods in the right column are methods of a client, errors are in ottla.errors."""
    faces = (Producer, Consumer, Admin, aio.Producer, aio.Consumer, aio.Admin)
    known = {name for face in (*faces, Results, Delivery, ConsumerRecord) for name in dir(face)}
    known |= {name for name in vars(ottla.errors) if name[0].isupper()} | {*ottla.__all__}
    known |= {"compile", "f", "iter", "next", "on_delivery", "TypeError"}
    for row in re.findall(r"^\| .* \|$", page.read_text(encoding="utf-8"), flags=re.MULTILINE):
        ours = row.rsplit(" | ", 1)[1]
        for code in re.findall(r"`([^`]+)`", ours):
            for name in re.findall(r"\b([A-Za-z_]\w*)\(", code):
                assert name in known, f"{page.name}: {code}"
            for name in re.findall(r"\b([A-Z]\w+Error)\b", code):
                assert name in known, f"{page.name}: {code}"
