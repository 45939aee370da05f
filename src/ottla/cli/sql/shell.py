"""The shell: reads lines until a semicolon, runs statements, keeps a history.

Ctrl-C ends the query that runs, or drops the lines typed so far; it does not end the shell. Ctrl-D does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ottla.cli.common.output import say, warn
from ottla.cli.sql.completing import Completer
from ottla.cli.sql.executing import run_one
from ottla.cli.sql.session import Session
from ottla.spark.sql.errors import SqlError
from ottla.spark.sql.lexer import is_complete, split_statements
from ottla.spark.sql.running import Runner

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
