"""The `dump-log` verb: its flags, the files to dump, and the renderer for their rows."""

import posixpath
import re
import sys
from collections.abc import Iterator

import click

from ottla.cli.common.options import plain_option, wide_option
from ottla.cli.common.output import make_console
from ottla.cli.dump_log.indexes import (
    dump_json,
    dump_leader_epochs,
    dump_offset_checkpoint,
    dump_offset_index,
    dump_producer_snapshot,
    dump_properties,
    dump_time_index,
    dump_txn_index,
)
from ottla.cli.dump_log.rows import (
    MAX_BYTES_DEFAULT,
    DumpOptions,
    JsonRenderer,
    Kind,
    PlainRenderer,
    RecordDecoder,
    Renderer,
    Rows,
    note,
    problem,
)
from ottla.cli.dump_log.segments import (
    DECODERS,
    decoder_for_topic_of,
    dump_batches,
    find_decoder,
    internal_decoder,
    record_decoder,
)
from ottla.env import Disk, OpenMode
from ottla.env.real import RealDisk
from ottla.errors import CorruptFile
from ottla.log.names import (
    CLEAN_SHUTDOWN,
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_CHECKPOINT,
    LOG_SUFFIX,
    META_PROPERTIES,
    OFFSET_INDEX_SUFFIX,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    SegmentFileName,
    parse_segment_file_name,
)

_METADATA_SNAPSHOT = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint(?:\.deleted|\.part)?")
_OFFSET_CHECKPOINTS = frozenset(
    {RECOVERY_POINT_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT, LOG_START_CHECKPOINT, CLEANER_CHECKPOINT}
)
_BOOTSTRAP = "bootstrap.checkpoint"
_QUORUM_STATE = "quorum-state"


def is_known(path: str) -> bool:
    """Whether `dump_file` can dump a file of this name."""
    name = posixpath.basename(path)
    return (
        parse_segment_file_name(name) is not None
        or _METADATA_SNAPSHOT.fullmatch(name) is not None
        or name in _OFFSET_CHECKPOINTS
        or name in {_BOOTSTRAP, _QUORUM_STATE, LEADER_EPOCH_CHECKPOINT, META_PROPERTIES, PARTITION_METADATA, CLEAN_SHUTDOWN}
    )


def dump_file(disk: Disk, path: str, options: DumpOptions) -> Rows:
    """The rows of one file of any kind. Damage becomes a row of kind PROBLEM."""
    try:
        yield from _dump_file(disk, path, options)
    except CorruptFile as damage:
        yield problem(str(damage))


def _dump_file(disk: Disk, path: str, options: DumpOptions) -> Rows:
    name = posixpath.basename(path)
    segment_file = parse_segment_file_name(name)
    if segment_file is not None:
        yield from _dump_segment_file(disk, path, segment_file, options)
    elif (snapshot := _METADATA_SNAPSHOT.fullmatch(name)) is not None:
        yield note(f"Snapshot end offset: {int(snapshot[1])}, epoch: {int(snapshot[2])}")
        yield from dump_batches(disk.open(path, OpenMode.READ), options)
    elif name == _BOOTSTRAP:
        yield note("KRaft bootstrap snapshot")
        yield from dump_batches(disk.open(path, OpenMode.READ), options)
    elif name in _OFFSET_CHECKPOINTS:
        yield from dump_offset_checkpoint(disk, path)
    elif name == LEADER_EPOCH_CHECKPOINT:
        yield from dump_leader_epochs(disk, path)
    elif name in (_QUORUM_STATE, CLEAN_SHUTDOWN):
        yield from dump_json(disk, path)
    elif name in (META_PROPERTIES, PARTITION_METADATA):
        yield from dump_properties(disk, path)
    else:
        yield note(f"Ignoring unknown file {path}")


def _dump_segment_file(disk: Disk, path: str, name: SegmentFileName, options: DumpOptions) -> Rows:
    if name.suffix == LOG_SUFFIX:
        yield note(f"Log starting offset: {name.base_offset}")
        yield from dump_batches(disk.open(path, OpenMode.READ), options)
    elif name.suffix == OFFSET_INDEX_SUFFIX:
        yield from dump_offset_index(disk, path, name, options)
    elif name.suffix == TIME_INDEX_SUFFIX:
        yield from dump_time_index(disk, path, name, options)
    elif name.suffix == SNAPSHOT_SUFFIX:
        yield from dump_producer_snapshot(disk, path)
    else:
        yield from dump_txn_index(disk, path)


EXAMPLES = """\b
Examples:
  ottla dump-log data/orders-0                         every file of a partition, batch by batch
  ottla dump-log data/orders-0/*.log --print-data-log  the records too
  ottla dump-log data/__consumer_offsets-3 --print-data-log
                                                       committed offsets, decoded
  ottla dump-log --files a.log,a.index --json          Kafka's spelling; one JSON object a line
"""


@click.command("dump-log", epilog=EXAMPLES)
@click.argument("paths", nargs=-1, type=click.Path())
@click.option("--files", metavar="A,B,…", help="Files to dump, separated by commas (Kafka's spelling of PATHS).")
@click.option("--print-data-log", is_flag=True, help="Show the content of records.")
@click.option("--deep-iteration", is_flag=True, help="Show records without their content.")
@click.option("--skip-record-metadata", is_flag=True, help="Show only the content of records; skips control records.")
@click.option("--key-decoder-class", default="string", metavar="DECODER", help="How keys are shown.", show_default=True)
@click.option("--value-decoder-class", default="string", metavar="DECODER", help="How values are shown.", show_default=True)
@click.option("--offsets-decoder", is_flag=True, help="Decode records of __consumer_offsets.")
@click.option("--transaction-log-decoder", is_flag=True, help="Decode records of __transaction_state.")
@click.option("--share-group-state-decoder", is_flag=True, help="Decode records of __share_group_state.")
@click.option("--cluster-metadata-decoder", is_flag=True, help="Decode records of __cluster_metadata.")
@click.option("--remote-log-metadata-decoder", is_flag=True, help="Decode records of __remote_log_metadata.")
@click.option("--index-sanity-check", is_flag=True, help="Only check indexes, as a node does at start.")
@click.option("--verify-index-only", is_flag=True, help="Check indexes against the log without showing their entries.")
@click.option(
    "--max-bytes", type=click.IntRange(0), default=MAX_BYTES_DEFAULT, help="Stop after this many bytes of each log file."
)
@click.option(
    "--max-message-size",
    type=click.IntRange(1),
    default=5 * 1024 * 1024,
    help="Accepted for compatibility; batches of any size are read.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, for programs.")
@plain_option
@click.option("--raw", is_flag=True, help="Kafka's lines, without escaping control characters in keys and payloads.")
@wide_option
def dump_log(paths: tuple[str, ...], files: str | None, **flags: object) -> int:
    """Show what is in log segments, indexes, snapshots and checkpoints.

    PATHS are files, or folders whose files are all shown. The output is a table on a terminal, the lines of Apache Kafka's
    kafka-dump-log in a pipe, and JSON lines with --json. In the folders of internal topics --print-data-log chooses the
    decoder by the topic. Files are only read. The exit code is 1 if damage was found.
    """
    disk = RealDisk()
    chosen = list(_expand(disk, [*paths, *(part.strip() for part in (files or "").split(",") if part.strip())]))
    if not chosen:
        raise click.UsageError("say which files or folders to dump, for example: ottla dump-log data/orders-0")
    renderer = _renderer(bool(flags["as_json"]), bool(flags["plain"]), bool(flags["raw"]))
    print_data, forced = _content_decoder(flags)
    damaged = False
    for path in chosen:
        decoder = (decoder_for_topic_of(path) or forced) if print_data == "auto" else forced
        options = DumpOptions(
            deep_iteration=bool(flags["deep_iteration"]),
            decoder=decoder,
            skip_record_metadata=bool(flags["skip_record_metadata"]),
            max_bytes=int(str(flags["max_bytes"])),
            index_sanity_check=bool(flags["index_sanity_check"]),
            verify_index_only=bool(flags["verify_index_only"]),
        )
        renderer.start_file(path)
        for row in dump_file(disk, path, options):
            damaged = damaged or row.kind is Kind.PROBLEM
            renderer.show(row)
    renderer.finish()
    return 1 if damaged else 0


def _expand(disk: Disk, paths: list[str]) -> Iterator[str]:
    """Replace folders by the known files in them and, recursively, in their subfolders."""
    for path in paths:
        if not disk.exists(path):
            raise click.UsageError(f"{path} does not exist: give a log file, an index, a checkpoint or a folder of them")
        if not disk.is_directory(path):
            yield path
            continue
        inside = [f"{path.rstrip('/')}/{name}" for name in disk.list_directory(path)]
        yield from (entry for entry in inside if is_known(entry) and not disk.is_directory(entry))
        yield from _expand(disk, [entry for entry in inside if disk.is_directory(entry)])


def _content_decoder(flags: dict[str, object]) -> tuple[str, RecordDecoder | None]:
    """("auto", fallback) if the topic chooses the decoder, ("forced", decoder) if a flag does, ("no", None) for no content."""
    for flag in ("offsets", "transaction_log", "share_group_state", "cluster_metadata", "remote_log_metadata"):
        if flags[f"{flag}_decoder"]:
            return "forced", internal_decoder(flag)
    named = [str(flags["key_decoder_class"]), str(flags["value_decoder_class"])]
    if not (flags["print_data_log"] or flags["skip_record_metadata"] or named != ["string", "string"]):
        return "no", None
    found = [find_decoder(name) for name in named]
    for name, decoder in zip(named, found, strict=True):
        if decoder is None:
            raise click.UsageError(
                f"there is no decoder {name!r}: choose one of {', '.join(DECODERS)}; Java classes cannot run here"
            )
    key, value = found
    assert key is not None
    assert value is not None
    return ("auto" if named == ["string", "string"] else "forced"), record_decoder(key, value)


def _renderer(as_json: bool, plain: bool, raw: bool) -> Renderer:
    if as_json:
        return JsonRenderer(sys.stdout)
    if plain or raw or not sys.stdout.isatty():
        return PlainRenderer(sys.stdout, for_terminal=sys.stdout.isatty() and not raw)
    from ottla.cli.dump_log.table import TableRenderer

    return TableRenderer(*make_console())
