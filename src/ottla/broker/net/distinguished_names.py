"""The subject of a certificate as text, as Java writes it: RFC 2253, the most specific part first.

Only the outline of the DER encoding is read, as far as the subject; OpenSSL has verified the certificate before. Attributes of
a type without a name in RFC 2253, such as e-mail addresses, and values that are no text appear as
`1.2.840.113549.1.9.1=#1605…`: the object id and the DER of the value in hexadecimal digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ottla.errors import DecodeError

_SEQUENCE, _OBJECT_ID = 0x30, 0x06
_VERSION = 0xA0
"""The tag of a certificate's version, which old certificates do not have."""
_TEXTS: Final = frozenset((0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E))
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString."""
_NAMES: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_ESCAPED: Final = frozenset(',=+<>#;"\\')


def subject_of(certificate: bytes) -> bytes:
    """The subject of a certificate, both in DER. Raises `DecodeError` if the outline is not that of a certificate."""
    body = _content(_content(certificate))
    elements = [element for element, _ in zip(_elements(body), range(6), strict=False)]
    if elements and elements[0][0] == _VERSION:
        del elements[0]
    # serial number, algorithm, issuer, validity, subject
    if len(elements) < 5:
        raise DecodeError("this is no certificate: it ends before its subject")
    return elements[4][2]


def name_of(subject: bytes) -> str:
    """A distinguished name in DER as text. Raises `DecodeError`."""
    parts = ["+".join(_attribute(each) for _, each, _ in _elements(part)) for _, part, _ in _elements(_content(subject))]
    return ",".join(reversed(parts))


def _content(data: bytes) -> bytes:
    """The content of the first DER element, a sequence."""
    for tag, content, _ in _elements(data):
        if tag == _SEQUENCE:
            return content
        break
    raise DecodeError("DER has no sequence where one must be")


def _elements(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """The DER elements in `data`: tag, content, and both with the length."""
    position = 0
    while position < len(data):
        start = position
        if len(data) - position < 2:
            raise DecodeError("DER ends within an element")
        tag, length = data[position], data[position + 1]
        position += 2
        if length & 0x80:
            count = length & 0x7F
            length = int.from_bytes(data[position : position + count], "big")
            position += count
        if not 0 <= length <= len(data) - position:
            raise DecodeError("DER ends within an element")
        yield tag, data[position : position + length], data[start : position + length]
        position += length


def _attribute(attribute: bytes) -> str:
    found = list(_elements(attribute))
    if len(found) != 2 or found[0][0] != _OBJECT_ID:
        raise DecodeError("an attribute of a distinguished name is no pair of object id and value")
    (_, id_bytes, _), (tag, content, whole) = found
    id_text = _object_id(id_bytes)
    name = _NAMES.get(id_text)
    if name is None or tag not in _TEXTS:
        return f"{name or id_text}=#{whole.hex()}"
    return f"{name}={_escaped(content.decode('utf-8', 'replace'))}"


def _object_id(data: bytes) -> str:
    numbers, number = [], 0
    for byte in data:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    if not numbers:
        raise DecodeError("an object id is empty")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _escaped(text: str) -> str:
    body = text.lstrip(" \r")
    lead, trail = len(text) - len(body), len(body) - len(body.rstrip(" \r"))
    if trail:
        body = body[:-trail]
    escaped = "".join("\\00" if each == "\0" else f"\\{each}" if each in _ESCAPED else each for each in body)
    outside = text[:lead], text[len(text) - trail :] if trail else ""
    before, after = ("".join(f"\\{each}" for each in blanks) for blanks in outside)
    return before + escaped + after
