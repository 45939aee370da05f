"""What bytes are: JSON, text, numbers, UUIDs, or unknown; and how they are shown. Pure.

A topic's keys or values usually have one form. `form_of` looks at one of them, `common_form` at many.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterable
from struct import unpack
from typing import Any, NamedTuple

FORMS = ("auto", "json", "text", "hex", "int32", "int64", "float64", "uuid")
PREVIEW_CHARACTERS = 300
WHOLE_CHARACTERS = 64 * 1024


class Content(NamedTuple):
    """A key or value as a page shows it."""

    form: str
    preview: str
    text: str
    """In full, JSON indented; cut at `WHOLE_CHARACTERS`."""
    size: int
    is_cut: bool


def show(data: bytes | None, form: str = "auto", limit: int = WHOLE_CHARACTERS) -> Content:
    """The bytes in a form; what does not fit it is shown as what it is."""
    if data is None:
        return Content("null", "null", "null", 0, False)
    chosen = form_of(data) if form == "auto" else form
    try:
        text = _text(data, chosen)
    except (ValueError, RecursionError, OverflowError):
        chosen = form_of(data)
        text = _text(data, chosen)
    preview = " ".join(text.split()) if chosen == "json" else text
    if len(preview) > PREVIEW_CHARACTERS:
        preview = preview[:PREVIEW_CHARACTERS] + "…"
    return Content(chosen, preview, text[:limit], len(data), len(text) > limit)


def form_of(data: bytes) -> str:
    """The form that bytes seem to have."""
    if not data:
        return "text"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {4: "int32", 8: "int64", 16: "uuid"}.get(len(data), "hex")
    if data[:1] in b'{["' or text.strip() in ("null", "true", "false"):
        try:
            json.loads(text)
            return "json"
        except (ValueError, RecursionError):
            pass
    if all(each.isprintable() or each in "\t\r\n" for each in text):
        return "text"
    return {4: "int32", 8: "int64"}.get(len(data), "hex")


def common_form(many: Iterable[bytes | None]) -> str:
    """The form that most have."""
    counted = Counter(form_of(each) for each in many if each is not None)
    return counted.most_common(1)[0][0] if counted else "text"


def _text(data: bytes, form: str) -> str:
    match form:
        case "json":
            return json.dumps(json.loads(data), indent=2, ensure_ascii=False)
        case "text":
            return data.decode()
        case "int32" | "int64":
            if len(data) != (4 if form == "int32" else 8):
                raise ValueError(f"{len(data)} bytes are no {form}")
            return str(int.from_bytes(data, "big", signed=True))
        case "float64":
            if len(data) != 8:
                raise ValueError(f"{len(data)} bytes are no float64")
            return repr(unpack(">d", data)[0])
        case "uuid":
            return str(uuid.UUID(bytes=data))
    return data.hex(" ")


def as_json(data: bytes | None, form: str) -> Any:
    """For downloads and searches: parsed JSON, or the text that is shown."""
    if data is None:
        return None
    if form == "json":
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            pass
    return show(data, form if form != "json" else "auto").text
