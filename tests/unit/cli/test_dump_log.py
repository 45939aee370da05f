"""The dump-log verb as its user sees it: folders, damage, JSON, the terminal table, wrong usage."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from ottla.cli.dump_log.command import dump_file
from ottla.cli.dump_log.rows import DumpOptions
from ottla.cli.dump_log.table import TableRenderer
from ottla.cli.main import main
from ottla.env.real import RealDisk
from ottla.log.directories.checkpoint import format_epochs
from ottla.log.producers.producer_entry import BatchMetadata, ProducerEntry
from ottla.log.producers.producer_snapshot import encode_snapshot
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.control import build_end_marker
from ottla.records.record import Record
from ottla.wire.log_records import encode_coordinator_key, encode_coordinator_value
from ottla.wire.messages.offset_records import OffsetCommitKey, OffsetCommitValue

NAME = "00000000000000000000"
TIME = 1_700_000_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A partition with a plain batch, a compressed one, a transaction marker, and a matching index."""
    folder = tmp_path / "orders-0"
    folder.mkdir()
    first = build_batch([Record(0, TIME, b"a", b"1", (("h", b"x"),)), Record(1, TIME + 1, None, None)], leader_epoch=0)
    second = build_batch(
        [Record(2, TIME + 2, b"b", b"2")], leader_epoch=0, codec=Codec.GZIP, producer_id=7, producer_epoch=0, base_sequence=3
    )
    marker = build_end_marker(
        is_commit=False,
        producer_id=7,
        producer_epoch=0,
        coordinator_epoch=5,
        timestamp_ms=TIME + 3,
        base_offset=3,
        leader_epoch=0,
    )
    (folder / f"{NAME}.log").write_bytes(first + second + marker)
    (folder / f"{NAME}.index").write_bytes((2).to_bytes(4, "big") + len(first).to_bytes(4, "big") + bytes(800))
    (folder / f"{NAME}.timeindex").write_bytes((TIME + 2).to_bytes(8, "big") + (2).to_bytes(4, "big"))
    (folder / f"{NAME}.txnindex").write_bytes(
        b"".join(n.to_bytes(s, "big") for n, s in ((0, 2), (7, 8), (2, 8), (3, 8), (4, 8)))
    )
    entry = ProducerEntry(7, 0, 5, TIME + 3, None, [BatchMetadata(3, 3, 2, 2, TIME + 2)])
    (folder / "00000000000000000004.snapshot").write_bytes(encode_snapshot([entry]))
    (folder / "leader-epoch-checkpoint").write_bytes(format_epochs([(0, 0)]))
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: U-Po9WMzSEybIvP2_Bt3xA")
    return folder


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["dump-log", *arguments])
    said = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, said.out, said.err


def rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[dict[str, object]]]:
    code, out, _ = run(capsys, "--json", *arguments)
    return code, [json.loads(line) for line in out.splitlines()]


def test_a_folder_is_dumped_whole(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = rows(capsys, str(folder), "--print-data-log")
    assert code == 0
    by_kind: dict[object, list[dict[str, object]]] = {}
    for row in found:
        by_kind.setdefault(row["kind"], []).append(row)
    assert [row["baseOffset"] for row in by_kind["batch"]] == [0, 2, 3]
    assert all(row["isvalid"] for row in by_kind["batch"])
    assert [row.get("payload") for row in by_kind["record"]] == ["1", None, "2", None]
    assert by_kind["record"][0]["headerKeys"] == ["h"]
    assert by_kind["record"][3]["endTxnMarker"] == "ABORT"
    assert [row["offset"] for row in by_kind["offsetIndexEntry"]] == [2]
    assert [row["timestamp"] for row in by_kind["timeIndexEntry"]] == [TIME + 2]
    assert [row["lastStableOffset"] for row in by_kind["transactionIndexEntry"]] == [4]
    assert by_kind["producer"][0]["lastSequence"] == 3
    assert by_kind["leaderEpoch"][0]["startOffset"] == 0
    assert by_kind["properties"][0]["topic_id"] == "U-Po9WMzSEybIvP2_Bt3xA"


def test_sequences_follow_offsets_after_compaction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"{NAME}.log"
    left = [Record(3, TIME, b"a", b"1"), Record(5, TIME, b"b", b"2")]
    batch = build_batch(left, base_offset=0, last_offset_delta=5, producer_id=1, producer_epoch=0, base_sequence=2**31 - 4)
    path.write_bytes(batch)
    _, found = rows(capsys, str(path), "--deep-iteration")
    assert [row["sequence"] for row in found if row["kind"] == "record"] == [2**31 - 1, 1]


def test_an_index_of_nothing_but_padding_has_no_entries(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / f"{NAME}.index").write_bytes(bytes(800))
    (folder / f"{NAME}.timeindex").write_bytes(bytes(1200))
    code, found = rows(capsys, str(folder / f"{NAME}.index"), str(folder / f"{NAME}.timeindex"))
    assert (code, found) == (0, [])


def test_nothing_is_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    run(capsys, str(folder), "--print-data-log")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_flipped_byte_is_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = folder / f"{NAME}.log"
    data = bytearray(log.read_bytes())
    data[70] ^= 1
    log.write_bytes(data)
    _, found = rows(capsys, str(log))
    assert [row["isvalid"] for row in found if row["kind"] == "batch"] == [False, True, True]


def test_a_torn_tail_is_damage(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = folder / f"{NAME}.log"
    data = log.read_bytes()
    log.write_bytes(data[:-10])
    code, out, _ = run(capsys, str(log))
    assert code == 1
    assert f"Found 68 invalid bytes at the end of {NAME}.log" in out


def test_wrong_index_entry_is_damage(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = folder / f"{NAME}.index"
    index.write_bytes((1).to_bytes(4, "big") + (9999).to_bytes(4, "big"))
    code, out, _ = run(capsys, str(index))
    assert code == 1
    assert "Mismatches in :" in out
    assert "Index offset: 1, log offset: none" in out
    index.write_bytes(b"abc")
    code, out, _ = run(capsys, str(index))
    assert code == 1
    assert "not a multiple of its entry size 8" in out


def test_wrong_time_index_entry_is_damage(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = folder / f"{NAME}.timeindex"
    index.write_bytes((TIME + 9).to_bytes(8, "big") + (2).to_bytes(4, "big"))
    code, out, _ = run(capsys, str(index), "--verify-index-only")
    assert code == 1
    assert f"Index timestamp: {TIME + 9}, log timestamp: {TIME + 2}" in out


def test_damaged_state_files_are_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snapshot = folder / "00000000000000000004.snapshot"
    snapshot.write_bytes(snapshot.read_bytes()[:-1])
    epochs = folder / "leader-epoch-checkpoint"
    epochs.write_text("0\n2\n0 0\n")
    code, out, _ = run(capsys, str(snapshot), str(epochs))
    assert code == 1
    assert str(snapshot) in out
    assert "2 entries announced, 1 found" in out


def test_the_topic_chooses_the_decoder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "__consumer_offsets-7"
    folder.mkdir()
    key = encode_coordinator_key(OffsetCommitKey(group="g", topic="orders", partition=1))
    value = encode_coordinator_value(OffsetCommitValue(offset=42, leader_epoch=1, metadata="m", commit_timestamp=5), 3)
    records = [Record(0, TIME, key, value), Record(1, TIME, key, None), Record(2, TIME, b"\x7f\xff", b"")]
    (folder / f"{NAME}.log").write_bytes(build_batch(records))
    code, found = rows(capsys, str(folder), "--print-data-log")
    first, tombstone, unknown = (row for row in found if row["kind"] == "record")
    assert code == 0
    assert first["key"] == {"type": "1", "data": {"group": "g", "topic": "orders", "partition": 1}}
    assert first["payload"]["data"]["offset"] == 42  # type: ignore[index]  # parsed JSON
    assert tombstone["payload"] == "<DELETE>"
    assert "unreadable: " in str(unknown["payload"])


def test_decoders_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"{NAME}.log"
    path.write_bytes(build_batch([Record(0, TIME, (5).to_bytes(8, "big"), b'{"a": 1}')]))
    long_key = ("--key-decoder-class", "org.apache.kafka.tools.api.LongDecoder")
    _, found = rows(capsys, str(path), *long_key, "--value-decoder-class", "json")
    assert [(row["key"], row["payload"]) for row in found if row["kind"] == "record"] == [(5, {"a": 1})]
    code, _, err = run(capsys, str(path), "--value-decoder-class", "com.example.Mine")
    assert code == 2
    assert "there is no decoder 'com.example.Mine'" in err


def test_wrong_usage_gets_a_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys)
    assert code == 2
    assert "say which files or folders" in err
    code, _, err = run(capsys, str(tmp_path / "gone.log"))
    assert code == 2
    assert "does not exist" in err
    (tmp_path / "notes.txt").write_text("hello")
    code, out, _ = run(capsys, str(tmp_path / "notes.txt"))
    assert code == 0
    assert "Ignoring unknown file" in out


def test_closed_pipe_is_not_a_failure(tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.log"
    path.write_bytes(b"".join(bytes(build_batch([Record(n, TIME, None, b"x")])) for n in range(5000)))
    dump = subprocess.Popen(
        [sys.executable, "-m", "ottla.cli.main", "dump-log", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert dump.stdout is not None
    dump.stdout.readline()
    dump.stdout.close()
    assert dump.stderr is not None
    assert dump.stderr.read() == b""
    dump.stderr.close()
    assert dump.wait(timeout=60) == 0


def test_terminal_shows_a_table(folder: Path) -> None:
    console = Console(width=160, record=True, force_terminal=True)
    renderer = TableRenderer(console, 160)
    for path in sorted(folder.iterdir()):
        renderer.start_file(str(path))
        for row in dump_file(RealDisk(), str(path), DumpOptions(deep_iteration=True)):
            renderer.show(row)
    shown = console.export_text()
    assert "Offsets" in shown
    assert "2–2" in shown
    assert "gzip" in shown
    assert "7/0 #3–3" in shown
    assert "txn,control" in shown
    assert "2023-11-14T22:13:20.002Z" in shown
