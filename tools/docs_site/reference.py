"""The reference of the public names, written from their signatures and docstrings.

Owns which name is on which page. Reads the classes as pure Python: compiled ones have no signatures. Docstrings are Markdown; a
paragraph that is Python and no sentence becomes a block of code.
"""

from __future__ import annotations

import ast
import enum
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, ForwardRef, NamedTuple, NoReturn, get_overloads

from tools.documents import code, table

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 100


class Page(NamedTuple):
    name: str
    title: str
    module: str
    about: str
    names: tuple[str, ...]
    """Empty for all names of the module that no other page has."""


TESTING = (
    "Broker",
    "Faults",
    "Fault",
    "Cluster",
    "ClusterNode",
    "Security",
    "Record",
    "Pause",
    "Cut",
    "AsyncBroker",
    "BrokerFailed",
    "NotRunning",
    "TimedOut",
)
CLIENTS = (
    "How to use it: [The Python clients](../clients.md). `settings` are Kafka's, with `_` for `.`: "
    "[Client settings](../client-settings.md)."
)
PAGES = (
    Page(
        "producer",
        "Producer",
        "ottla",
        CLIENTS,
        (
            "Producer",
            "Delivery",
            "Deliveries",
            "RecordMetadata",
            "ProducerRecord",
            "PreparedTransaction",
            "TransactionIdentity",
            "Finish",
        ),
    ),
    Page(
        "consumer",
        "Consumer",
        "ottla",
        CLIENTS,
        (
            "Consumer",
            "ConsumerRecord",
            "RebalanceListener",
            "Columns",
            "TopicPartition",
            "PartitionInfo",
            "OffsetAndMetadata",
            "OffsetAndTimestamp",
            "ConsumerGroupMetadata",
        ),
    ),
    Page("admin", "Admin", "ottla", "How to use it: [The Admin client](../admin.md).", ("Admin", "Results")),
    Page(
        "admin-types",
        "Types of the Admin client",
        "ottla",
        "Arguments and results of [Admin](admin.md). Most arguments have [a short form](../admin.md) in plain Python.",
        (),
    ),
    Page(
        "asyncio",
        "The asyncio clients",
        "ottla.aio",
        "The same calls as coroutines: [The Python clients](../clients.md).",
        ("Producer", "Consumer", "Admin", "Worker"),
    ),
    Page(
        "worker",
        "Worker",
        "ottla",
        "How to use it: [An application in production](../application.md).",
        ("Worker", "Retry", "DeadLetters"),
    ),
    Page(
        "serializers",
        "Serializers",
        "ottla",
        "",
        ("json_of", "JsonOf"),
    ),
    Page(
        "observing",
        "Metrics and traces",
        "ottla",
        "How to use them: [Metrics](../metrics.md), [An application in production](../application.md).",
        ("PrometheusCollector", "Tracing"),
    ),
    Page("testing", "Testing", "ottla.testing", "How to use it: [Kafka in your tests](../testing.md).", TESTING),
    Page("errors", "Errors", "ottla.errors", "", ()),
    Page(
        "spark", "Spark helpers", "ottla.spark", 'The options of `format("ottla")` are in [Spark: reference](../spark.md).', ()
    ),
)

ERROR_KINDS = ("RetriableError", "AbortableError", "FatalError")
ERROR_BASES = ("OttlaError", "KafkaError", "ClientError")
OWN_ERRORS = {"NO_CODE", "drop_frames", "is_out_of_descriptors", "remedy_for"}
"""Names of ottla.errors that only Ottla's own code uses."""
NOT_MADE = {"AsyncBroker", "ClusterNode", "Cut", "Deliveries", "Delivery", "Fault", "Faults", "Pause", "Results"}
"""Classes whose objects a program gets and does not make."""
FIRST = ("send", "subscribe", "assign", "poll", "create_topic", "produce")
"""The methods that stand before the others of their class, which follow in the order of their definition."""

ALIASES = {
    "Servers": "client.type_parameters",
    "Headers": "client.producer.intake",
    "OnDelivery": "client.producer.calls",
    "OnBatch": "client.producer.calls",
    "PartitionLike": "client.consumer.arguments",
    "Partitions": "client.consumer.arguments",
    "ByPartition": "client.consumer.arguments",
    "Topics": "client.consumer.arguments",
    "TimeLike": "client.consumer.arguments",
    "CommitOffsets": "client.consumer.arguments",
    "Offsets": "client.consumer.offset_calls",
    "CommitCallback": "client.consumer.offset_calls",
    "Handler": "client.consumer.listener",
}
"""Names for types in signatures, and the modules below `ottla` that define them."""

SERIALIZERS = """\
`key_serializer`, `value_serializer`, `key_deserializer` and `value_deserializer` take the name of a form, a Python type, a
callable or an object with `serialize` or `deserialize`. Without one, keys and values are bytes.

{forms}

A callable gets `(topic, headers, value)` or only the value; what it raises becomes a `SerializationError` or a
`DeserializationError` that names topic, partition and offset. None is Kafka's null and reaches no serializer.
"""
FORMS = {
    "bytes": ("bytes, bytearray, memoryview", "unchanged", "ByteArray"),
    "str": ("str", "UTF-8, or what `key.serializer.encoding` and the like say", "String"),
    "json": ("what `json.dumps` takes", "UTF-8 without spaces; NaN is refused", ""),
    "int16": ("", "16 bits, big endian, with a sign", "Short"),
    "int32": ("", "32 bits", "Integer"),
    "int64": ("int", "64 bits", "Long"),
    "float32": ("", "IEEE 754, big endian", "Float"),
    "float64": ("float", "IEEE 754, big endian", "Double"),
    "bool": ("bool", "one byte, 0 or 1", "Boolean"),
    "uuid": ("uuid.UUID", "text with hyphens", "UUID"),
    "void": ("None", "null", "Void"),
}


def public_names(module: ModuleType) -> list[str]:
    names = [name for name in module.__all__ if not name.startswith("_")]
    return [name for name in names if not inspect.ismodule(getattr(module, name))]


def names_of(page: Page) -> list[str]:
    if page.names:
        return list(page.names)
    taken = {name for each in PAGES if each.module == page.module for name in each.names}
    names = [name for name in public_names(import_module(page.module)) if name not in taken]
    return [name for name in names if name not in OWN_ERRORS] if page.module == "ottla.errors" else names


def reference_pages() -> dict[Path, str]:
    rows = []
    pages = {}
    for page in PAGES:
        names = names_of(page)
        text = errors_page(page, names) if page.name == "errors" else page_text(page, names)
        pages[Path("reference", f"{page.name}.md")] = text
        named = list(ERROR_BASES + ERROR_KINDS) if page.name == "errors" else names
        shown = ", ".join(f"[`{name}`]({page.name}.md#{anchor(name)})" for name in named[:12]) + (
            " …" if len(names) > 12 else ""
        )
        rows.append((f"[{page.title}]({page.name}.md)", code(f"from {page.module} import …"), shown))
    head = "Every public name, from its docstring. What is not here is not public and may change.\n\n"
    pages[Path("reference", "index.md")] = f"# Reference\n\n{head}{table(['page', 'import', 'names'], rows)}"
    return pages


def page_text(page: Page, names: list[str]) -> str:
    module = import_module(page.module)
    parts = [f"# {page.title}\n", f"```python\n{import_line(page.module, names)}\n```\n"]
    if page.about:
        parts.append(page.about + "\n")
    if page.name == "serializers":
        rows = [(code(form), *FORMS[form]) for form in forms()]
        parts.append(SERIALIZERS.format(forms=table(["form", "Python types that choose it", "bytes", "in Java"], rows)))
    parts += [described(name, getattr(module, name)) for name in names]
    if page.name in ("producer", "consumer", "asyncio"):
        parts.append(aliases_text("\n".join(parts)))
    return "\n".join(parts)


def aliases_text(page: str) -> str:
    """What the names for types in the signatures of a page stand for."""
    rows, seen, more = [], set(), page
    while names := [name for name in ALIASES if name not in seen and re.search(rf"\b{name}\b(?!\()", more)]:
        seen |= set(names)
        found = [(name, alias_of(name, ROOT / "src" / "ottla" / f"{ALIASES[name].replace('.', '/')}.py")) for name in names]
        rows += [(code(name), code(meaning)) for name, meaning in found]
        more = " ".join(meaning for _, meaning in found)
    return f"## Types in the signatures\n\n{table(['name', 'is'], rows)}" if rows else ""


def alias_of(name: str, path: Path) -> str:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name:
            return ast.unparse(node.value)
    raise LookupError(f"{path} defines no {name}")


def forms() -> tuple[str, ...]:
    names: tuple[str, ...] = import_module("ottla.client_core.serializers").FORMS
    return names


def import_line(module: str, names: list[str]) -> str:
    if module == "ottla.aio":
        return "from ottla import aio"
    shown = names if len(names) <= 4 else [*names[:3], "…"]
    return f"from {module} import {', '.join(shown)}".replace(", …", "  # and so on")


def anchor(name: str) -> str:
    return name.replace(".", "").lower()


def described(name: str, value: Any) -> str:
    if inspect.isclass(value):
        return class_text(name, value)
    return f"## {name}\n\n{signature_block(name, value)}\n{markdown(inspect.getdoc(value) or '')}\n"


def class_text(name: str, kind: type[Any]) -> str:
    parts = [f"## {name}\n"]
    fields = fields_of(kind)
    if issubclass(kind, enum.Enum):
        docs = attribute_docs(kind)
        parts.append(markdown(own_doc(kind)))
        parts.append(
            table(
                ["member", "value", ""], [(code(each.name), code(repr(each.value)), docs.get(each.name, "")) for each in kind]
            )
        )
        fields = []
    else:
        parts += ["" if name in NOT_MADE else signature_block(name, kind), markdown(own_doc(kind))]
    if fields:
        parts.append(table(["attribute", "type", ""], fields))
    for member, value in methods_of(kind):
        prefix = "async " if is_async(value) else ""
        heading = f"### {name}.{member} {{ #{anchor(f'{name}.{member}')} }}\n"
        doc = markdown(inspect.getdoc(value) or inspect.getdoc(getattr(kind, member)) or "")
        if isinstance(value, (property, cached_property)):
            parts.append(f"{heading}\n```python\n{member}: {annotation_text(property_type(value))}\n```\n{doc}")
        else:
            parts.append(f"{heading}\n{signature_block(prefix + member, getattr(kind, member))}{doc}")
    return "\n".join(parts) + "\n"


def own_doc(kind: type[Any]) -> str:
    """What the class says of itself, and of its arguments."""
    made = kind.__dict__.get("__init__")
    said = [kind.__dict__.get("__doc__"), made.__doc__ if inspect.isfunction(made) else None]
    return "\n\n".join(inspect.cleandoc(each) for each in said if each)


def is_async(value: Any) -> bool:
    if isinstance(value, (property, cached_property)):
        return False
    function = getattr(value, "__func__", value)
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def property_type(value: Any) -> Any:
    """The type of a property; that of another member's result."""
    function = value.fget if isinstance(value, property) else getattr(value, "func", value)
    function = getattr(function, "__func__", function)
    assert function is not None
    return inspect.get_annotations(function).get("return", "Any")


def methods_of(kind: type[Any]) -> Iterator[tuple[str, Any]]:
    """Public methods and properties of a class and of its bases of Ottla's."""
    found = dict(members_of(kind))
    yield from ((name, found[name]) for name in FIRST if name in found)
    yield from ((name, value) for name, value in found.items() if name not in FIRST)


def members_of(kind: type[Any]) -> Iterator[tuple[str, Any]]:
    seen: set[str] = set()
    for each in kind.__mro__:
        if not each.__module__.startswith("ottla"):
            continue
        for name, value in vars(each).items():
            if name.startswith("_") or name in seen:
                continue
            seen.add(name)
            function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
            is_member = isinstance(value, (property, cached_property)) or inspect.isfunction(function)
            if is_member and property_type(value) not in (
                "NoReturn",
                NoReturn,
            ):  # that is a name of another client's: it says what to write
                yield name, value


def fields_of(kind: type[Any]) -> list[tuple[str, str, str]]:
    """The fields of named tuples and data classes, and other attributes with a type, with the strings below them."""
    docs: dict[str, str] = {}
    types: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if each.__module__.startswith("ottla"):
            docs |= attribute_docs(each)
            types |= {name: annotation_text(found) for name, found in inspect.get_annotations(each).items()}
    return [(code(name), code(found), docs.get(name, "")) for name, found in types.items() if not name.startswith("_")]


@cache
def attribute_docs(kind: type[Any]) -> dict[str, str]:
    """The string below each attribute in the source of a class."""
    try:
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    except (
        OSError,
        TypeError,
    ):  # a kernel, whose module has another name than its file; an error, whose module has another file
        return {}
    assert isinstance(node, ast.ClassDef)
    docs = {}
    for statement, after in zip(node.body, node.body[1:], strict=False):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
        if isinstance(target, ast.Name) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            docs[target.id] = " ".join(str(after.value.value).split())
    return docs


def annotation_text(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:ottla|collections|typing|datetime)(?:\.\w+)*\.(?=\w)", "", text)


def signature_block(name: str, value: Any) -> str:
    """The signature as a block of code; one for each overload of a method."""
    overloads = [] if inspect.isclass(value) else get_overloads(inspect.unwrap(value))
    lines = [signature_line(name, each) for each in overloads or [value]]
    return "```python\n" + "\n".join(filter(None, lines)) + "\n```\n" if any(lines) else ""


def signature_line(name: str, value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parts: list[str] = []
    starred = False
    for parameter in signature.parameters.values():
        if parameter.name in ("self", "cls", "world") or parameter.name.startswith("_"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
        starred = starred or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        said = "Servers | None" if parameter.name == "bootstrap_servers" else annotation_text(parameter.annotation)
        text = f"{stars}{parameter.name}" + (f": {said}" if said else "")
        if parameter.default is not parameter.empty:
            text += f"{' = ' if said else '='}{default_text(parameter.default)}"
        parts.append(text)
    back = "" if inspect.isclass(value) else annotation_text(signature.return_annotation)
    end = f") -> {back}" if back else ")"
    line = f"{name}({', '.join(parts)}{end}"
    return line if len(line) <= WIDTH else f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + end


def default_text(value: object) -> str:
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if inspect.isclass(value):
        return value.__name__
    text = repr(dict(value) if isinstance(value, MappingProxyType) else value)
    return "…" if text.startswith("<") else text


def markdown(doc: str) -> str:
    """A docstring as Markdown: paragraphs that are Python become blocks of code."""
    parts: list[str] = []
    fence = False
    for paragraph in doc.split("\n\n"):
        is_code = looks_like_code(paragraph) or (fence and paragraph.startswith("    "))
        if is_code and not fence:
            parts.append("```python\n" + textwrap.dedent(paragraph))
        elif is_code:
            parts.append(paragraph)
        else:
            if fence:
                parts[-1] += "\n```"
            parts.append(paragraph)
        fence = is_code
    if fence:
        parts[-1] += "\n```"
    return "\n\n".join(parts) + "\n"


def looks_like_code(paragraph: str) -> bool:
    if not re.search(r"[(=]|^(?:from|import) ", paragraph, re.MULTILINE):
        return False
    try:
        ast.parse(textwrap.dedent(paragraph))
    except SyntaxError:
        return False
    return True


def errors_page(page: Page, names: list[str]) -> str:
    """The classes that others stand on, then a table of all. What only Ottla's own code calls is left out."""
    module = import_module(page.module)
    found = {name: getattr(module, name) for name in names}
    classes = {name: kind for name, kind in found.items() if inspect.isclass(kind) and issubclass(kind, BaseException)}
    parts = [
        f"# {page.title}\n",
        "```python\nfrom ottla.errors import KafkaError, RetriableError\n```\n",
        "Clients raise one class for each of Kafka's error codes, below a class that says what helps:\n",
        table(["catch", "and then"], [(f"[`{name}`](#{anchor(name)})", own_doc(classes[name])) for name in ERROR_KINDS]),
        *(class_text(name, classes[name]) for name in ERROR_BASES),
    ]
    rows = []
    for name, kind in sorted(classes.items()):
        if name not in ERROR_BASES:
            number = vars(kind).get("code")
            bases = ", ".join(code(base.__name__) for base in kind.__bases__)
            about = " ".join(own_doc(kind).split())
            rows.append((f'<a id="{anchor(name)}"></a>`{name}`', "" if number is None else str(int(number)), bases, about))
    parts.append("## All classes\n\n" + table(["class", "code", "is a", ""], rows))
    parts += [described(name, found[name]) for name in ("class_of", "exception_of")]
    return "\n".join(parts)
