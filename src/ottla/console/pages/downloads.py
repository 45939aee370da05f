"""Downloads of records: JSON lines, CSV or Parquet, from the place and with the search that the query names, to the end.

A download is made while it is sent: a few pieces of a scan are in memory, whatever the topic holds. It ends where the topic
ended when it began. If the cluster fails on the way, the connection is cut, so that browsers report a failed download.
"""

from __future__ import annotations

import asyncio
import csv
import importlib.util
import io
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Final, Protocol

from starlette.responses import Response, StreamingResponse

from ottla.console.app import Refused, Visit, page
from ottla.console.formats import Reader, header_text, plain_header
from ottla.console.pages.records import Ask, check_search, learn, own_cluster, understand
from ottla.console.records import Shown, forward

FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""What spreadsheets take for the begin of a formula."""
COLUMNS: Final = ("partition", "offset", "timestamp", "key", "value", "headers")
ROW_GROUP_BYTES: Final = 8 * 1024 * 1024


class Writer(Protocol):
    """Turns records into bytes of a file."""

    def write(self, found: list[Shown]) -> bytes: ...
    def end(self) -> bytes: ...


class JsonLines:
    """One object a line. "Send from a file" takes the same lines."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def write(self, found: list[Shown]) -> bytes:
        lines = []
        for each in found:
            key_form, key = self._reader.plain(each, "key")
            value_form, value = self._reader.plain(each, "value")
            row = {
                "partition": each.partition,
                "offset": each.offset,
                "timestamp": each.timestamp,
                "key": key,
                "key_form": key_form,
                "value": value,
                "value_form": value_form,
                "headers": [plain_header(name, value) for name, value in each.headers],
            }
            lines.append(json.dumps(row, ensure_ascii=False, separators=(",", ":"), default=str))
        return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")

    def end(self) -> bytes:
        return b""


class Csv:
    """A table with a header. Cells that a spreadsheet would take for a formula begin with a quote."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._begin = True

    def write(self, found: list[Shown]) -> bytes:
        target = io.StringIO()
        writer = csv.writer(target)
        if self._begin:
            writer.writerow(COLUMNS)
            self._begin = False
        for each in found:
            headers = json.dumps([[name, header_text(value)] for name, value in each.headers], ensure_ascii=False)
            cells = (_cell(self._reader.plain(each, part)[1]) for part in ("key", "value"))
            writer.writerow([each.partition, each.offset, each.timestamp, *cells, headers if each.headers else ""])
        return target.getvalue().encode("utf-8", "replace")

    def end(self) -> bytes:
        return self.write([]) if self._begin else b""


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if text.startswith(FORMULA):
        try:
            float(text)
        except ValueError:
            return "'" + text
    return text


class Parquet:
    """Key and value as bytes, exactly as they are; row groups of some megabytes."""

    def __init__(self, reader: Reader) -> None:
        import pyarrow
        import pyarrow.parquet

        self._arrow = pyarrow
        self._schema = pyarrow.schema(
            [
                ("partition", pyarrow.int32()),
                ("offset", pyarrow.int64()),
                ("timestamp", pyarrow.timestamp("ms", tz="UTC")),
                ("key", pyarrow.binary()),
                ("value", pyarrow.binary()),
                ("headers", pyarrow.list_(pyarrow.struct([("name", pyarrow.string()), ("value", pyarrow.binary())]))),
            ]
        )
        self._sink = _Sink()
        self._writer = pyarrow.parquet.ParquetWriter(pyarrow.PythonFile(self._sink, mode="w"), self._schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []
        self._size = 0

    def write(self, found: list[Shown]) -> bytes:
        for each in found:
            self._size += len(each.key or b"") + len(each.value or b"") + 64
            self._rows.append(
                {
                    "partition": each.partition,
                    "offset": each.offset,
                    "timestamp": each.timestamp,
                    "key": each.key,
                    "value": each.value,
                    "headers": [
                        {"name": name.encode("utf-8", "replace").decode(), "value": value} for name, value in each.headers
                    ],
                }
            )
        if self._size > ROW_GROUP_BYTES:
            self._flush()
        return self._sink.taken()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(self._arrow.Table.from_pylist(self._rows, self._schema))
            self._rows, self._size = [], 0

    def end(self) -> bytes:
        self._flush()
        self._writer.close()
        return self._sink.taken()


class _Sink(io.RawIOBase):
    """What Parquet has written since the last look."""

    def __init__(self) -> None:
        super().__init__()
        self._data = bytearray()
        self._written = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._data += data
        self._written += len(data)
        return len(data)

    def tell(self) -> int:
        return self._written

    def taken(self) -> bytes:
        data, self._data = bytes(self._data), bytearray()
        return data


KINDS: Final[dict[str, tuple[Callable[[Reader], Writer], str, str]]] = {
    "jsonl": (JsonLines, "application/x-ndjson", "jsonl"),
    "csv": (Csv, "text/csv; charset=utf-8", "csv"),
    "parquet": (Parquet, "application/vnd.apache.parquet", "parquet"),
}


def has_parquet() -> bool:
    return importlib.util.find_spec("pyarrow") is not None


@page("/topics/{name}/records/download", "")
async def download(visit: Visit) -> Response:
    """Records as a file. From `newest`: the whole topic."""
    kind = visit.query.get("format", "jsonl")
    if kind not in KINDS:
        raise Refused(400, f"there is no format {kind!r}: choose one of {', '.join(KINDS)}")
    if kind == "parquet" and not has_parquet():
        raise Refused(
            400, "Parquet needs pyarrow beside the console: pip install 'ottla[arrow]'. CSV and JSON lines need nothing"
        )
    check_search(visit)
    ask = await understand(visit, visit.view.cluster)
    await learn(visit.view.cluster, ask)
    _, media_type, ending = KINDS[kind]
    name = "".join(each if each.isalnum() or each in "._-" else "_" for each in ask.topic.name)
    headers = {"Content-Disposition": f'attachment; filename="{name}.{ending}"', "Cache-Control": "no-store"}
    return StreamingResponse(_content(visit, ask, kind), media_type=media_type, headers=headers)


async def _content(visit: Visit, ask: Ask, kind: str) -> AsyncGenerator[bytes, None]:
    reader = None if ask.reader.is_raw else ask.reader
    async with own_cluster(visit) as cluster:
        writer: Writer = await asyncio.to_thread(KINDS[kind][0], ask.reader)
        async with aclosing(forward(cluster, ask.topic, ask.wanted, ask.search, reader)) as steps:
            async for step in steps:
                records = [each for each in step.found if not each.is_control]
                if data := await asyncio.to_thread(writer.write, records):
                    yield data
        if data := await asyncio.to_thread(writer.end):
            yield data
