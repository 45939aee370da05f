"""`ottla brokers list`."""

import json

from tests.unit.cli.conftest import RunOttla


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.rstrip("\t").split("\t")]


def test_lines_for_pipes_have_a_tab_after_each_cell(ottla: RunOttla) -> None:
    heading, *rows = map(cells, ottla("brokers", "list").lines)
    assert heading == ["BROKER", "STATE", "ENDPOINT", "RACK", "LEADERS", "REPLICAS", "OUT-OF-SYNC"]
    assert rows == [
        ["1", "active", "localhost:9092", "here", "1", "1", "0"],
        ["2", "active, controller", "two:9092", "-", "0", "0", "0"],
        ["3", "fenced", "three:9092", "-", "0", "2", "2"],
    ]


def test_a_table_on_a_terminal(ottla: RunOttla) -> None:
    said = ottla("brokers", "list", columns=100)
    assert "Out of sync" in said.lines[0]
    assert len([line for line in said.lines if line.strip()]) == 4


def test_json(ottla: RunOttla) -> None:
    shown = json.loads(ottla("brokers", "list", "--json").out)
    assert [(each["broker"], each["isFenced"], each["isController"]) for each in shown] == [
        (1, False, False),
        (2, False, True),
        (3, True, False),
    ]
