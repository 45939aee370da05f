"""Every table at 60 and 80 columns: no line is too long, no number is broken, and --wide shows everything."""

import re
from pathlib import Path

import pytest
from rich.cells import cell_len
from tests.support.nodes.fake_node import FakeNetwork
from tests.support.servers.ottla_cli import Said, run_cli
from tests.unit.cli.conftest import WHERE
from tests.unit.cli.named_cluster import END, OFFSET, PRODUCER_ID, READING, SIZE_BYTES, named_node, with_name

from ottla.ids import TopicPartition
from ottla.log.directories.checkpoint import format_offsets
from ottla.log.producers.producer_entry import BatchMetadata, ProducerEntry
from ottla.log.producers.producer_snapshot import encode_snapshot
from ottla.records.builder import build_batch
from ottla.records.record import Record

LONG = "consumer-billing-1-5f0c1c5e-8f2e-4b0e-9d0a-3f6f6f1f2a3b"
TABLES = [each for each in READING if each[0] != "consume"]
NUMBERS = {
    "describe --all-groups": (OFFSET, END, END - OFFSET),
    "reset-offsets": (END,),
    "transactions list": (PRODUCER_ID,),
    "transactions describe NAME": (PRODUCER_ID,),
    "describe-producers": (PRODUCER_ID, OFFSET),
    "find-hanging": (PRODUCER_ID, OFFSET),
    "configs": (SIZE_BYTES,),
    "get-offsets": (END,),
}


def run(monkeypatch: pytest.MonkeyPatch, name: str, arguments: tuple[str, ...], columns: int, *flags: str) -> Said:
    monkeypatch.delenv("OTTLA_BOOTSTRAP_SERVERS", raising=False)
    monkeypatch.setattr("ottla.cli.common.connection.make_network", lambda: FakeNetwork({WHERE: named_node(name)}))
    said = run_cli(*with_name(arguments, name), *flags, columns=columns)
    assert said.rc == 0, said.err
    return said


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("name", ["orders", LONG, "x" * 249], ids=["short", "long", "longest"])
@pytest.mark.parametrize("arguments", TABLES, ids=" ".join)
def test_tables_fit_and_numbers_stay_whole(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], name: str, columns: int
) -> None:
    said = run(monkeypatch, name, arguments, columns)
    assert all(cell_len(line) <= columns for line in said.lines), said.out
    words = re.split(r"[\s,;]+", said.out)
    (expected,) = [each for key, each in NUMBERS.items() if " ".join(arguments).endswith(key) or key in arguments] or [()]
    assert {str(number) for number in expected} <= set(words), said.out


@pytest.mark.parametrize("arguments", TABLES, ids=" ".join)
def test_wide_tables_shorten_and_break_nothing(monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]) -> None:
    said = run(monkeypatch, LONG, arguments, 60, "--wide")
    assert "…" not in said.out
    assert "no room" not in said.out
    assert LONG in said.out


def test_member_columns_are_left_out_and_named_in_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    said = run(monkeypatch, LONG, ("groups", "describe", "--all-groups"), 60)
    assert "(no room for Consumer id, Host, Client id: --wide shows all columns)" in " ".join(said.out.split())


def test_pipes_get_the_same_lines_with_and_without_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.cli.common.connection.make_network", lambda: FakeNetwork({WHERE: named_node(LONG)}))
    narrow, wide = (run_cli("groups", "describe", "--all-groups", *flags).out for flags in ((), ("--wide",)))
    assert narrow == wide
    assert f"{OFFSET} " in narrow


@pytest.mark.parametrize("arguments", TABLES, ids=" ".join)
def test_headings_are_capitalised_words(monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]) -> None:
    headings: list[str] = []

    def lay_out(given: list[str], *rest: object) -> object:
        headings.extend(each.lstrip("#~=") for each in given)
        return real(given, *rest)  # type: ignore[arg-type]  # passed through

    from ottla.cli.common.tables import lay_out as real

    monkeypatch.setattr("ottla.cli.common.tables.lay_out", lay_out)
    run(monkeypatch, "orders", arguments, 80)
    assert all(re.fullmatch(r"([A-Z][a-z]*|[IE]S?LR|ISR)( ([a-z]+|ELR))*|", heading) for heading in headings), headings


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    folder = tmp_path / "p-0"
    folder.mkdir()
    records = [Record(OFFSET + number, 1_700_000_000_000, b"key", b"value " * 30) for number in range(3)]
    batch = build_batch(records, leader_epoch=1_000_000, producer_id=PRODUCER_ID, producer_epoch=3, base_sequence=1_000_000)
    (folder / f"{OFFSET:020d}.log").write_bytes(batch)
    entry = ProducerEntry(
        PRODUCER_ID, 3, 5, 1_700_000_000_000, OFFSET, [BatchMetadata(1_000_000, 1_000_002, END - 2, END, 1_700_000_000_000)]
    )
    (folder / f"{END:020d}.snapshot").write_bytes(encode_snapshot([entry]))
    (folder / "recovery-point-offset-checkpoint").write_bytes(format_offsets({TopicPartition(LONG, 0): END}))
    return folder


@pytest.mark.parametrize("columns", [60, 80])
def test_dumps_leave_columns_out_and_break_no_number(partition: Path, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(partition.parent)
    said = run_cli("dump-log", "p-0", "--deep-iteration", columns=columns)
    assert all(len(line) <= columns for line in said.lines), said.out
    words = re.split(r"[\s–]+", said.out)
    assert {str(each) for each in (OFFSET, OFFSET + 1, OFFSET + 2, END, PRODUCER_ID)} <= set(words), said.out
    assert "--wide shows all" in said.out
    wide = run_cli("dump-log", "p-0", "--deep-iteration", "--wide", columns=columns).out
    assert "Producer #sequences" in wide
    assert f"{PRODUCER_ID}/3 #1000000–1000002" in wide
    assert LONG in wide
