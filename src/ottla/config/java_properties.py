r"""Reads and writes Java's properties files: `server.properties`, `meta.properties`.

One `key=value` per line; `:` or blanks may replace `=`; `#` and `!` begin comments. A line that ends in an odd number of
backslashes continues on the next, whose leading blanks are dropped. `\t \n \r \f \uXXXX` and a backslash before any other
character are escapes. Files are Latin-1. The last value of a duplicate key wins. Any bytes are valid, except a broken `\u`.
"""

from collections.abc import Iterable, Mapping

_BLANKS = " \t\f"
_UNESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", "\\": "\\\\", "=": "\\=", ":": "\\:", "#": "\\#", "!": "\\!"}


def parse_properties(data: bytes) -> dict[str, str]:
    r"""Parse a file's bytes. Raises `ValueError` with the line's number for a `\u` without four hexadecimal digits."""
    properties = {}
    for number, line in _logical_lines(data.decode("latin-1")):
        split, value_start = _find_separator(line)
        try:
            properties[_unescape(line[:split])] = _unescape(line[value_start:])
        except ValueError:
            raise ValueError(f"line {number} has a \\u that is not followed by four hexadecimal digits") from None
    return properties


def format_properties(properties: Mapping[str, str], comments: Iterable[str] = ()) -> bytes:
    """The bytes of a file with `properties` in their order, as Java writes them, below `comments`."""
    lines = [f"#{comment}" for comment in comments]
    for key, value in properties.items():
        body = value.lstrip(" ")
        lead = "\\ " if body != value else ""  # Java escapes only the first leading blank; the others follow it literally
        lines.append(f"{_escape(key).replace(' ', chr(92) + ' ')}={lead}{_escape(value[1:] if lead else value)}")
    return "".join(f"{line}\n" for line in lines).encode("latin-1")


def _logical_lines(text: str) -> Iterable[tuple[int, str]]:
    """(number of the first line, text) of every line that is neither empty nor a comment, with continuations joined."""
    joined: str | None = None
    first = 0
    for number, natural in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        line = natural.lstrip(_BLANKS)
        if joined is None:
            if not line or line[0] in "#!":
                continue
            joined, first = "", number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            joined += line[:-1]
        else:
            yield first, joined + line
            joined = None
    if joined is not None:
        yield first, joined


def _find_separator(line: str) -> tuple[int, int]:
    """Where the key ends and where the value begins."""
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANKS:
        end += 2 if line[end] == "\\" else 1
    end = min(end, len(line))
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return end, len(line) - len(rest)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    characters = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == "\\" and position < len(text):
            character = text[position]
            position += 1
            if character == "u":
                digits = text[position : position + 4]
                if len(digits) != 4 or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
                    raise ValueError(digits)
                character = chr(int(digits, 16))
                position += 4
            else:
                character = _UNESCAPED.get(character, character)
        elif character == "\\":
            break
        characters.append(character)
    # Java writes characters beyond 16 bits as two escapes (a surrogate pair): join them.
    return "".join(characters).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escape(text: str) -> str:
    return "".join(
        _ESCAPED.get(character) or (character if " " <= character <= "~" else _escape_unicode(character)) for character in text
    )


def _escape_unicode(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{int.from_bytes(units[i : i + 2], 'big'):04X}" for i in range(0, len(units), 2))
