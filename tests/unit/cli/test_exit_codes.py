"""Exit codes of the commands that ask a cluster: 0 done, 1 failed wholly or in part, 2 wrong usage. Never a traceback."""

import pytest
from tests.support.nodes.fake_node import FakeNetwork, FakeNode
from tests.unit.cli.conftest import RunOttla
from tests.unit.cli.named_cluster import CHANGING, READING, named_node, with_name

BIG = str(1 << 70)
ASKING = [each for each in (*READING, *CHANGING) if len(each) > 1 and each[1] != "NAME"]


@pytest.mark.parametrize("arguments", ASKING, ids=" ".join)
def test_cluster_that_is_not_there_is_a_failure(ottla: RunOttla, network: FakeNetwork, arguments: tuple[str, ...]) -> None:
    network.nodes.clear()
    said = ottla(*with_name(arguments, "orders"))
    assert said.rc == 1, said.err
    assert said.err.startswith("ottla: ")


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_command_that_shows_everything_ends_with_zero(
    ottla: RunOttla, network: FakeNetwork, arguments: tuple[str, ...]
) -> None:
    network.nodes = dict.fromkeys(network.nodes, named_node("orders"))
    said = ottla(*with_name(arguments, "orders"))
    assert said.rc == 0, said.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("topics", "create", "new", "--partitions", BIG),
        ("topics", "create", "new", "--replica-assignment", BIG),
        ("topics", "create", ""),
        ("topics", "alter", "orders", "--partitions", BIG),
        ("topics", "describe", "--topic-id", "nonsense"),
        ("configs", "alter", "topic", "orders", "--unset", ""),
        ("configs", "describe", "broker", BIG),
        ("configs", "alter", "broker", "7", "--set", "a=1"),
        ("transactions", "describe-producers", "orders:0", "--broker-id", "7"),
        ("delete-records", f"orders:{BIG}:0"),
        ("delete-records", f"orders:0:{BIG}"),
        ("get-offsets", "orders", "--time", BIG),
        ("groups", "describe", ""),
        ("groups", "delete", ""),
        ("groups", "delete-offsets", "g", "--topic", f"orders:{BIG}"),
        ("groups", "reset-offsets", "", "--topic", "orders", "--to-offset", "1", "--execute"),
        ("transactions", "describe", ""),
        ("transactions", "describe-producers", f"orders:{BIG}"),
        ("transactions", "describe-producers", "orders:0", "--broker-id", BIG),
        ("transactions", "list", "--duration-filter", BIG),
        ("transactions", "abort", "orders:0", "--producer-id", "1", "--producer-epoch", BIG, "--coordinator-epoch", "0"),
        ("log-dirs", "--brokers", BIG),
    ],
    ids=" ".join,
)
def test_value_that_no_cluster_can_take_is_one_sentence(ottla: RunOttla, node: FakeNode, arguments: tuple[str, ...]) -> None:
    said = ottla(*arguments)
    assert said.rc in (1, 2), said.out
    assert "ottla: " in said.err
    assert len(said.err.rpartition("ottla: ")[2].splitlines()) == 1
