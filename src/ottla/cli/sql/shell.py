"""The shell: reads lines until a semicolon, runs statements, keeps a history.

Ctrl-C ends the query that runs, or drops the lines typed so far; it does not end the shell. Ctrl-D does. Completion offers
keywords, declared names and topics; a cluster that does not answer offers none. An error is one or two lines, its trace is in
the log file.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from ottla.cli.common.explanations import explain
from ottla.cli.common.output import say, warn
from ottla.cli.sql.session import Session
from ottla.errors import OttlaError
from ottla.spark.errors import SparkOptionError
from ottla.spark.java import NoJava
from ottla.spark.session import SessionFailed
from ottla.spark.sql.catalog import Catalog
from ottla.spark.sql.checks import analysis_error, check_all, check_statement_syntax
from ottla.spark.sql.declarations import METADATA
from ottla.spark.sql.errors import PlacedSqlError, SqlError, spark_sentence
from ottla.spark.sql.interrupts import Interrupted
from ottla.spark.sql.lexer import Cut, is_complete, split_statements
from ottla.spark.sql.parser import parse
from ottla.spark.sql.runner import Runner
from ottla.spark.sql.statements import NEEDS_SPARK, Create, Insert, Select, Statement

PROMPT, MORE = "ottla> ", "   ... "
HISTORY_LINES_MAX = 1000
HELP = """Statements end with ; and may have several lines.

  SELECT … ;                        a result now, over all records from the earliest to the latest
  SELECT … EMIT CHANGES [LIMIT n];  a live result, until Ctrl-C or n rows
  CREATE STREAM orders (id BIGINT, amount DOUBLE) WITH (topic='orders', format='json', key='id');
  CREATE TABLE users (id STRING, name STRING) WITH (topic='users', format='json', key='id');
                                    a table has the latest value of each key
  CREATE STREAM big WITH (format='json') AS SELECT … FROM orders;   runs until the shell ends
  INSERT INTO orders VALUES (1, 9.5);      INSERT INTO orders SELECT …;
  SHOW STREAMS | TABLES | TOPICS | QUERIES;   DESCRIBE orders;   DROP STREAM orders;   TERMINATE query_1;
  SET 'auto.offset.reset'='earliest';   SET;   UNSET 'auto.offset.reset';

A topic without a declaration can be read by its name: key and value are text then.
Columns of every record: _topic, _partition, _offset, _timestamp, _key, _headers, _error.
All else is Spark SQL. Ctrl-C ends a query, Ctrl-D or exit the shell."""


def history_path(environment: Mapping[str, str] | None = None) -> Path:
    """The file with the lines of earlier shells."""
    variables = os.environ if environment is None else environment
    base = Path(variables.get("XDG_STATE_HOME") or Path(variables.get("HOME", "~")).expanduser() / ".local" / "state")
    return base / "ottla" / "sql_history"


class Shell:
    """One conversation."""

    def __init__(self, runner: Runner, session: Session, read_line: Callable[[str], str] = input) -> None:
        self._runner = runner
        self._session = session
        self._read_line = read_line

    def run(self) -> None:
        """Read and run statements until the input ends."""
        typed = ""
        while True:
            try:
                line = self._read_line(MORE if typed else PROMPT)
            except EOFError:
                say("")
                return
            except KeyboardInterrupt:
                say("")
                typed = ""
                continue
            word = line.strip().rstrip(";").strip().lower()
            if not typed and word in ("exit", "quit", "\\q"):
                return
            if not typed and word in ("help", "\\h", "?"):
                for each in HELP.split("\n"):
                    say(each)
                continue
            typed = f"{typed}\n{line}" if typed else line
            if is_complete(typed):
                self.execute(typed)
                typed = ""

    def execute(self, text: str) -> None:
        """Run the statements of a text up to the first that fails. Ctrl-C ends them."""
        try:
            cuts = split_statements(text)
            for cut in cuts:
                if not run_one(cut, self._runner, self._session, cuts):
                    return
        except SqlError as error:
            warn(str(error))
        except KeyboardInterrupt as interrupt:
            say("", err=True)
            warn(str(interrupt) or "interrupted")


def with_history(work: Callable[[], Any], completer: Completer, path: Path) -> Any:
    """Run `work` with line editing, history and completion, where Python has readline."""
    try:
        import readline
    except ImportError:
        return work()
    readline.set_completer(completer)
    readline.set_completer_delims(" \t\n,;()='\"`")
    readline.parse_and_bind("tab: complete")
    try:
        readline.read_history_file(path)
    except OSError:
        pass  # the first shell of this user
    readline.set_history_length(HISTORY_LINES_MAX)
    try:
        return work()
    finally:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(path)
        except OSError as error:
            warn(f"the history {path} cannot be written: {error.strerror}")


KEYWORDS = (
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "BY",
    "ORDER",
    "HAVING",
    "LIMIT",
    "JOIN",
    "LEFT",
    "ON",
    "AS",
    "WITH",
    "CREATE",
    "STREAM",
    "TABLE",
    "REPLACE",
    "DROP",
    "SHOW",
    "STREAMS",
    "TABLES",
    "TOPICS",
    "QUERIES",
    "DESCRIBE",
    "INSERT",
    "INTO",
    "VALUES",
    "SET",
    "UNSET",
    "TERMINATE",
    "EMIT",
    "CHANGES",
    "COUNT",
    "SUM",
    "AVG",
    "MIN",
    "MAX",
    "WINDOW",
    "DISTINCT",
    "UNION",
    "ALL",
    "AND",
    "OR",
    "NOT",
    "NULL",
    "IS",
    "IN",
    "LIKE",
    "BETWEEN",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "BIGINT",
    "INT",
    "DOUBLE",
    "STRING",
    "BOOLEAN",
    "TIMESTAMP",
    "DECIMAL",
    "ARRAY",
    "MAP",
    "STRUCT",
)
FRESH_S = 10.0
"""How long the topics are remembered."""


class Completer:
    """The function that readline calls: `completer(text, 0)`, `completer(text, 1)`, … until it returns None."""

    def __init__(
        self, catalog: Catalog, topics: Callable[[], Collection[str]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._catalog = catalog
        self._ask = topics
        self._clock = clock
        self._topics: list[str] = []
        self._asked_s: float | None = None
        self._matches: list[str] = []

    def __call__(self, text: str, state: int) -> str | None:
        if state == 0:
            self._matches = self.matches(text)
        return self._matches[state] if state < len(self._matches) else None

    def matches(self, text: str) -> list[str]:
        """The words that begin with `text`: keywords in the case that is typed, names as they are."""
        if not text:
            return []
        upper = [word for word in KEYWORDS if word.startswith(text.upper())]
        keywords = upper if text[0].isupper() else [word.lower() for word in upper]
        names = {*(each.name for each in self._catalog), *self._known_topics(), *METADATA}
        for each in self._catalog:
            names |= {column.name for column in each.columns}
        return [*keywords, *sorted(name for name in names if name.startswith(text))]

    def _known_topics(self) -> list[str]:
        now_s = self._clock()
        if self._asked_s is None or now_s - self._asked_s > FRESH_S:
            self._asked_s = now_s
            try:
                self._topics = sorted(self._ask())
            except Exception:  # an error message would garble the line being typed
                self._topics = []
        return self._topics


def run_all(text: str, runner: Runner, session: Session) -> int:
    """Check all statements of a text, then run them up to the first that fails. Returns the exit code."""
    cuts = split_statements(text)
    topics = functools.cache(runner.cluster.topics)
    statements = check_all(cuts, runner.catalog, runner.settings, topics, has_grammar=not session.is_remote)
    if any(isinstance(each, NEEDS_SPARK) or (isinstance(each, Create) and each.query) for each in statements):
        session.allow(statements)
        session.check()
    if len(statements) > 1 and any(isinstance(each, Select | Insert) for each in statements):
        analyse(statements, cuts, runner, session)
    return 0 if all(run_one(cut, runner, session, cuts) for cut in cuts) else 1


def analyse(statements: Sequence[Statement], cuts: Sequence[Cut], runner: Runner, session: Session) -> None:
    """Raise what Spark's analysis finds wrong with a statement, before the first of several is run."""
    try:
        runner.analyse(list(zip(statements, cuts, strict=True)))
    except Exception as error:
        # Whatever else fails here, the statement itself will tell, or its run on another Spark.
        if isinstance(error, PlacedSqlError | SessionFailed | NoJava):
            raise
        if session.is_lost(error):
            runner.forget_spark()


def run_one(cut: Cut, runner: Runner, session: Session, cuts: Sequence[Cut] = ()) -> bool:
    """Run one statement; False if it failed, which was shown. Ctrl-C is the caller's to handle."""
    place = f"line {cut.line}: " if len(cuts) > 1 else ""
    try:
        statement = parse(cut.text)
        if not session.is_remote:
            check_statement_syntax(statement, cut)
        runner.run(statement)
    except Interrupted:
        raise KeyboardInterrupt from None
    except PlacedSqlError as error:
        warn(str(error))
        return False
    except (OttlaError, SparkOptionError) as error:
        warn(place + explain(error))
        return False
    except Exception as error:
        # Rows are shown only after the last one has come, so a SELECT can be run again. An INSERT may have written some.
        if session.is_lost(error) and runner.forget_spark() and isinstance(statement, Select):
            return run_one(cut, runner, session, cuts)
        if isinstance(error, OSError):
            warn(place + explain(error))
            return False
        session.keep_trace(error, cut.text)
        if hasattr(error, "getQueryContext") and (placed := analysis_error(error, statement, cut)) is not None:
            warn(str(placed))
            return False
        sentence = spark_sentence(error, cut.text)
        warn(f"{place}{sentence}\n({session.log} has the trace)", lines=True)
        return False
    return True
