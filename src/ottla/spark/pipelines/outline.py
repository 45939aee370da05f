"""What the flows of a pipeline read and write, for `describe`: from the text of Spark's plans, and without Spark.

Every run and every `validate` that analyses the graph writes `outline.json` beside the log, from what
`DataFrame.explain("extended")` prints. Where it is missing, or older than the pipeline's files, the files themselves are read:
definitions and names that are written out are found, those that code computes are not.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import re
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ottla.spark.pipelines import graph as graphs
from ottla.spark.pipelines import sql_files, storage
from ottla.spark.pipelines.connections import with_address
from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.spec import OTTLA_NAMES, Connection, Spec

if TYPE_CHECKING:
    from ottla.spark.pipelines.resolution import Resolved


_SECTION = re.compile(r"== Analyzed Logical Plan ==\n(.*?)(?:\n== |\Z)", re.DOTALL)
_ALIAS = re.compile(r"[\s:+|-]*[~']?SubqueryAlias (\S+)$")
_NODE = re.compile(r"[\s:|]*[+:]- ")
_STREAM = re.compile(r"StreamingRelationV2 [^,]+, ([\w.]+), [^,]+, \[(.*?)\], \[")


@dataclass(frozen=True)
class Reads:
    """What a query reads."""

    names: tuple[str, ...] = ()
    """Tables and views, the nearest ones only: not what those read themselves."""
    sources: tuple[tuple[str, dict[str, str]], ...] = ()
    """Streaming sources that the query itself loads: format and options."""


@dataclass
class _Found:
    names: list[str] = field(default_factory=list)
    sources: list[tuple[str, dict[str, str]]] = field(default_factory=list)


def explain_text(frame: Any) -> str:
    """The plans of a DataFrame as text."""
    text = io.StringIO()
    with redirect_stdout(text):
        frame.explain(extended=True)
    return text.getvalue()


def reads_of(text: str, known: set[str]) -> Reads:
    """What the analysed plan in `text` reads. `known` are the pipeline's own tables and views."""
    section = _SECTION.search(text)
    found = _Found()
    skip_deeper_than: int | None = None
    is_root_seen = False
    for line in (section[1] if section else text).splitlines():
        if is_root_seen and _NODE.match(line) is None:
            continue  # a line break in a literal
        is_root_seen = is_root_seen or _NODE.match(line) is not None
        depth = len(line) - len(line.lstrip(" :+|-"))
        if skip_deeper_than is not None and depth > skip_deeper_than:
            continue
        skip_deeper_than = None
        alias = _ALIAS.match(line)
        if alias is not None:
            name = alias[1].removeprefix("spark_catalog.").removeprefix("default.")
            if name in known:
                found.names.append(name)
                skip_deeper_than = depth
            continue
        stream = _STREAM.search(line)
        if stream is not None:
            found.sources.append((stream[1], _options(stream[2])))
    return Reads(tuple(dict.fromkeys(found.names)), tuple(found.sources))


def _options(text: str) -> dict[str, str]:
    """`a=1, b=2` as a mapping. A value may contain commas: only a word with = after it begins the next option."""
    parts = re.split(r", (?=[\w.]+=)", text)
    return {key: value for key, _, value in (part.partition("=") for part in parts) if key}


VERSION = 1
_DEFINED = {
    "table": graphs.TABLE,
    "materialized_view": graphs.VIEW,
    "temporary_view": graphs.TEMPORARY,
    "append_flow": graphs.SINK,
}
_SQL_KINDS = {
    sql_files.STREAMING_TABLE: graphs.TABLE,
    sql_files.MATERIALIZED_VIEW: graphs.VIEW,
    sql_files.TEMPORARY_VIEW: graphs.TEMPORARY,
}
_READ = re.compile(r"\b(?:FROM|JOIN|STREAM)\s*\(?\s*((?:`[^`]+`|\w+)(?:\.(?:`[^`]+`|\w+))*)", re.IGNORECASE)

Flow = dict[str, Any]


def outline_file(spec: Spec) -> Path:
    """Where the outline is kept."""
    return storage.log_file(spec).with_name("outline.json")


def write_outline(resolved: Resolved) -> list[Flow]:
    """Keep what Spark's analysis says about the flows, and return it. A disk that cannot be written fails nothing here."""
    spec, path = resolved.spec, outline_file(resolved.spec)
    flows = analysed_flows(resolved)
    text = json.dumps({"version": VERSION, "files": digest(spec), "flows": flows}, indent=1)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".new").write_text(text, encoding="utf-8")
        os.replace(path.with_suffix(".new"), path)
    return flows


def read_outline(spec: Spec) -> tuple[list[Flow], bool]:
    """The flows, and whether Spark has analysed them as they are now; else they are what can be read in the files."""
    try:
        found = json.loads(outline_file(spec).read_text(encoding="utf-8"))
        if found["version"] == VERSION and found["files"] == digest(spec):
            return found["flows"], True
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return written_flows(spec), False


def digest(spec: Spec) -> str:
    """Changes whenever a file of the pipeline, a source or a sink does."""
    made = hashlib.sha256()
    for path in spec.files():
        made.update(f"{path}\n".encode() + path.read_bytes())
    for each in (*spec.sources, *spec.sinks):
        options = sorted(_shown(spec, with_address(each, spec)).items())
        made.update(repr((each.name, each.format, options, each.schema, each.is_streaming)).encode())
    return made.hexdigest()


def analysed_flows(resolved: Resolved) -> list[Flow]:
    """Each flow with what it reads and writes, in the order in which they run."""

    known = {*resolved.tables, *resolved.views}
    found = []
    for name, frame in resolved.frames.items():
        flow, reads = resolved.graph.flows[name], reads_of(explain_text(frame), known)
        output = resolved.graph.outputs[flow.target]
        sources = [(kind, _shown(resolved.spec, options)) for kind, options in reads.sources]
        made = _flow(resolved.spec, name, flow.place, list(reads.names), sources, output)
        found.append(made | {"expectations": [asdict(each) for each in resolved.graph.expectations_of(flow)]})
    return found


def source_text(kind: str, options: dict[str, str]) -> str:
    """`topic orders`, `csv data/orders`."""
    lowered = {key.lower(): value for key, value in options.items()}
    if kind == "ottla":
        named = lowered.get("subscribe") or lowered.get("topic") or lowered.get("subscribepattern") or lowered.get("assign")
        return f"topic {named}" if named else "topics of the column topic"
    return f"{kind} {lowered['path']}" if "path" in lowered else kind


def edges(flow: Flow) -> tuple[list[str], str]:
    """What a flow reads, and what it writes, in words: topics are `topic NAME`, all else has a name in the pipeline."""
    reads = [*flow["reads"], *(source_text(each["format"], each["options"]) for each in flow["sources"])]
    return reads, source_text(flow["format"], flow["options"]) if flow["kind"] == graphs.SINK else flow["target"]


def _flow(
    spec: Spec, name: str, place: str, reads: list[str], sources: list[tuple[str, dict[str, str]]], output: graphs.Output
) -> Flow:
    return {
        "flow": name,
        "defined": place,
        "reads": reads,
        "sources": [{"format": kind, "options": options} for kind, options in sources],
        "target": output.name,
        "kind": output.kind,
        "format": output.format or (None if output.kind == graphs.TEMPORARY else "parquet"),
        "options": _shown(spec, dict(output.options)),
    }


def _shown(spec: Spec, options: dict[str, str]) -> dict[str, str]:
    return {key: spec.masked(value) for key, value in options.items()}


# Read in the files


def written_flows(spec: Spec) -> list[Flow]:
    """The flows that the files define in so many words."""
    sources = {each.name: each for each in spec.sources}
    outputs = {each.name: _sink(each, spec) for each in spec.sinks}
    definitions: list[tuple[str, str, str, str | None, str]] = []
    """Name, place, kind, target and all text that may name what is read."""
    for path in spec.files():
        name = str(path.relative_to(spec.folder)) if path.is_relative_to(spec.folder) else str(path)
        text = path.read_text(encoding="utf-8", errors="replace")
        definitions += _in_sql(text, name) if path.suffix == ".sql" else _in_python(text, name)
    for name, place, kind, target, _ in definitions:
        if target is None:
            outputs.setdefault(name, graphs.Output(name, kind, place))
    known = {*sources, *outputs}
    found = [
        _flow(spec, each.name, OTTLA_NAMES[0], [], [(each.format, _shown(spec, with_address(each, spec)))], _view(each))
        for each in sources.values()
    ]
    for name, place, kind, target, text in definitions:
        output = outputs.get(target or name) or graphs.Output(target or name, graphs.TABLE, place)
        reads = [each for each in dict.fromkeys(_names_in(text)) if each in known and each != output.name]
        if text or kind != graphs.TABLE:
            found.append(_flow(spec, name, place, reads, [], output))
    return found


def _sink(each: Connection, spec: Spec) -> graphs.Output:
    return graphs.Output(each.name, graphs.SINK, OTTLA_NAMES[0], each.format, with_address(each, spec))


def _view(each: Connection) -> graphs.Output:
    return graphs.Output(each.name, graphs.TEMPORARY, OTTLA_NAMES[0])


def _names_in(text: str) -> Iterator[str]:
    """Names after FROM and JOIN. Python code gives the names of `table(…)` in this form too."""
    for found in _READ.findall(text):
        yield ".".join(part.strip("`") for part in found.split("."))


def _in_sql(text: str, name: str) -> Iterator[tuple[str, str, str, str | None, str]]:
    try:
        statements = sql_files.parse_sql(text, name)
    except PipelineError:
        return
    for each in statements:
        yield each.name, f"{name} line {each.line}", _SQL_KINDS.get(each.kind, graphs.TABLE), each.target, each.query or ""


def _in_python(text: str, name: str) -> Iterator[tuple[str, str, str, str | None, str]]:
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise PipelineError(f"{name} line {error.lineno}: SyntaxError: {error.msg}") from None
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        for decorator in node.decorator_list:
            call = decorator.func if isinstance(decorator, ast.Call) else decorator
            kind = call.attr if isinstance(call, ast.Attribute) else call.id if isinstance(call, ast.Name) else ""
            if kind in _DEFINED:
                given = {each.arg: each.value for each in decorator.keywords} if isinstance(decorator, ast.Call) else {}
                title = _text(given.get("name")) or node.name
                target = (_text(given.get("target")) or "?") if kind == "append_flow" else None
                yield title, f"{name} line {node.lineno}", _DEFINED[kind], target, _read_by(node)


def _read_by(function: ast.FunctionDef) -> str:
    """What a function reads, as if it were SQL."""
    found = []
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            text = _text(node.args[0])
            if text is not None and node.func.attr in ("table", "sql"):
                found.append(f"FROM {text}" if node.func.attr == "table" else text)
    return "\n".join(found)


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
