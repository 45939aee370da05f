"""Words of ksqlDB and Flink: windows are rewritten for Spark, for others a sentence says what to write instead. Pure."""

from __future__ import annotations

import re
from itertools import pairwise

from ottla.spark.sql.errors import SqlError
from ottla.spark.sql.lexer import NUMBER, SIGN, TEXT, Token, split_at_commas, tokenize
from ottla.spark.sql.statements import Window

UNITS = re.compile(r"(MILLISECOND|SECOND|MINUTE|HOUR|DAY|WEEK)S?", re.IGNORECASE)
BOUNDS = {"WINDOWSTART": "start", "WINDOWEND": "end"}
KSQL_EXAMPLE = "WINDOW TUMBLING (SIZE 1 MINUTE), HOPPING (SIZE 5 MINUTES, ADVANCE BY 1 MINUTE) or SESSION (30 SECONDS)"
FLINK_WINDOWS = {"TUMBLE": "window({time}, '1 minute')", "HOP": "window({time}, '5 minutes', '1 minute')", "CUMULATE": ""}
INSTEAD = {
    ("PAUSE",): "PAUSE is not there: TERMINATE ends a query, and CREATE STREAM … AS SELECT starts one",
    ("RESUME",): "RESUME is not there: TERMINATE ends a query, and CREATE STREAM … AS SELECT starts one",
    ("RUN", "SCRIPT"): "RUN SCRIPT is not there: `ottla sql -f file.sql` runs a file",
    ("DEFINE",): "DEFINE is not there: write DECLARE VARIABLE name = value, and the name in expressions",
    ("UNDEFINE",): "UNDEFINE is not there: write DROP TEMPORARY VARIABLE name",
    ("SHOW", "PROPERTIES"): "SHOW PROPERTIES is not there: SET alone shows the settings",
    ("LIST", "PROPERTIES"): "LIST PROPERTIES is not there: SET alone shows the settings",
    ("SHOW", "JOBS"): "SHOW JOBS is not there: SHOW QUERIES lists the queries of this shell",
    ("STOP", "JOB"): "STOP JOB is not there: write TERMINATE and the name that SHOW QUERIES gives",
    ("CREATE", "SINK"): "connectors are not there: `ottla pipeline` reads and writes tables of other systems",
    ("CREATE", "CONNECTOR"): "connectors are not there: `ottla pipeline` reads and writes tables of other systems",
    ("SHOW", "CONNECTORS"): "connectors are not there: `ottla pipeline` reads and writes tables of other systems",
    ("DROP", "CONNECTOR"): "connectors are not there: `ottla pipeline` reads and writes tables of other systems",
    ("CREATE", "TYPE"): "CREATE TYPE is not there: write the STRUCT<…> in the columns",
    ("RESET",): "RESET is not there: write UNSET 'name'",
    ("EXECUTE",): "EXECUTE is not there: leave the word out",
}
"""Statements of others, and what to write instead."""


def refuse_others(tokens: list[Token]) -> None:
    """Raise what to write in place of a statement that only others have."""
    for words, sentence in INSTEAD.items():
        if len(tokens) >= len(words) and all(token.is_word(word) for token, word in zip(tokens, words, strict=False)):
            raise SqlError(sentence)


def take_window(sql: str) -> tuple[str, Window | None]:
    """The query with blanks in place of ksqlDB's WINDOW clause, and the window. Places in the text stay as they are."""
    tokens = tokenize(sql)
    _refuse_flink(tokens)
    for index, token in enumerate(tokens[:-2]):
        kind = tokens[index + 1]
        if token.is_word("WINDOW") and kind.is_word("TUMBLING", "HOPPING", "SESSION") and tokens[index + 2].value == "(":
            end = _closing(tokens, index + 2)
            window = _window(sql, kind.value.upper(), tokens[index + 3 : end])
            start, stop = token.start, tokens[end].end
            blank = "".join(sign if sign == "\n" else " " for sign in sql[start:stop])
            if not any(one.is_word("GROUP") for one in tokens[end:]):
                raise SqlError(
                    f"WINDOW {kind.value.upper()} needs GROUP BY after it: a window is one of the things to group by"
                )
            return sql[:start] + blank + sql[stop:], window
    return sql, None


def put_window(sql: str, window: Window, time: str) -> str:
    """The query for Spark: the window in its GROUP BY, WINDOWSTART and WINDOWEND as the bounds of the window."""
    changes: list[tuple[int, int, str]] = []
    depth = 0
    tokens = tokenize(sql)
    for index, token in enumerate(tokens):
        if token.kind == SIGN and token.value in "()":
            depth += 1 if token.value == "(" else -1
        if token.is_word(*BOUNDS):
            name = BOUNDS[token.value.upper()]
            is_named = index + 1 < len(tokens) and tokens[index + 1].is_word("AS")
            in_list = index and (tokens[index - 1].value == "," or tokens[index - 1].is_word("SELECT"))
            alias = f" AS {token.value}" if in_list and not is_named else ""
            changes.append((token.start, token.end, f"{window.function}.{name}{alias}"))
        if depth == 0 and token.is_word("GROUP") and index + 1 < len(tokens) and tokens[index + 1].is_word("BY"):
            end = tokens[index + 1].end
            changes.append((end, end, f" {window.call(time)},"))
    for start, end, text in reversed(changes):
        sql = sql[:start] + text + sql[end:]
    return sql


def watermark_of(sql: str, tokens: list[Token]) -> tuple[str, str]:
    """The column and the delay of Flink's WATERMARK FOR ts AS ts - INTERVAL '5' SECOND; `tokens` begin after FOR."""
    example = "WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"
    shown = sql[tokens[0].start : tokens[-1].end] if tokens else ""
    values = [each.value.upper() for each in tokens]
    if len(tokens) == 3 and values[1] == "AS" and values[0] == values[2]:
        return tokens[0].value, "0 seconds"
    if len(tokens) != 7 or values[1] != "AS" or values[0] != values[2] or values[3:5] != ["-", "INTERVAL"]:
        raise SqlError(f"WATERMARK FOR {shown} is not understood: write {example}")
    if tokens[5].kind not in (TEXT, NUMBER) or UNITS.fullmatch(values[6]) is None:
        raise SqlError(f"the delay of WATERMARK FOR {tokens[0].value} is no time: write {example}")
    return tokens[0].value, f"{tokens[5].value} {values[6].lower()}"


def _window(sql: str, kind: str, tokens: list[Token]) -> Window:
    size = advance = None
    for part in split_at_commas(tokens):
        words = [each.value.upper() for each in part]
        if words[:2] == ["GRACE", "PERIOD"]:
            raise SqlError("GRACE PERIOD is a property of the stream here: add watermark='10 minutes' in its WITH")
        if words[:1] == ["RETENTION"]:
            raise SqlError(
                "RETENTION is not there: a window is kept as long as the watermark of its stream allows; leave it out"
            )
        if words[:1] == ["SIZE"] and kind != "SESSION":
            size = _duration(part[1:])
        elif words[:2] == ["ADVANCE", "BY"] and kind == "HOPPING":
            advance = _duration(part[2:])
        elif kind == "SESSION":
            size = _duration(part)
        else:
            raise SqlError(f"{sql[part[0].start : part[-1].end]} is no part of WINDOW {kind}: write {KSQL_EXAMPLE}")
    if size is None or (kind == "HOPPING" and advance is None):
        raise SqlError(f"WINDOW {kind} is not complete: write {KSQL_EXAMPLE}")
    if kind == "SESSION":
        return Window("session_window", (size,))
    return Window("window", (size,) if advance is None else (size, advance))


def _duration(tokens: list[Token]) -> str:
    if len(tokens) != 2 or tokens[0].kind != NUMBER or UNITS.fullmatch(tokens[1].value) is None:
        shown = " ".join(each.value for each in tokens) or "nothing"
        raise SqlError(f"{shown} is no time: write a number and SECONDS, MINUTES, HOURS or DAYS, such as 5 MINUTES")
    return f"{tokens[0].value} {tokens[1].value.lower()}"


def _refuse_flink(tokens: list[Token]) -> None:
    for index, token in enumerate(tokens[:-2]):
        if not token.is_word("TUMBLE", "HOP", "CUMULATE", "SESSION") or tokens[index + 1].value != "(":
            continue
        inside = tokens[index + 2 : _closing(tokens, index + 1)]
        if not inside or not (inside[0].is_word("TABLE") or any(each.is_word("INTERVAL") for each in inside)):
            continue
        names = [one for one, two in pairwise(inside) if two.value in (")", ",") and one.is_identifier]
        time = names[1].value if inside[0].is_word("TABLE") and len(names) > 1 else names[0].value if names else "ts"
        if token.is_word("CUMULATE"):
            raise SqlError("CUMULATE is not there: Spark has window and session_window, in GROUP BY")
        call = f"session_window({time}, '5 minutes')" if token.is_word("SESSION") else FLINK_WINDOWS[token.value.upper()]
        word = token.value.upper()
        raise SqlError(
            f"{word}(…) is Flink's: write GROUP BY {call.format(time=time)}, and window.start and window.end in SELECT"
        )


def _closing(tokens: list[Token], opening: int) -> int:
    depth = 0
    for index in range(opening, len(tokens)):
        if tokens[index].kind == SIGN and tokens[index].value in "()":
            depth += 1 if tokens[index].value == "(" else -1
            if depth == 0:
                return index
    raise SqlError("a parenthesis has no end: close it with )")
