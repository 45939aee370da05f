"""Runs the statements of a text and shows their errors: one or two lines each, the trace in the log file."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ottla.cli.common.explaining import explain
from ottla.cli.common.output import warn
from ottla.cli.sql.session import Session
from ottla.errors import OttlaError
from ottla.spark.errors import SparkOptionError
from ottla.spark.sql.checking import check_all, check_statement_syntax
from ottla.spark.sql.errors import SqlSyntaxError, spark_sentence
from ottla.spark.sql.interrupts import Interrupted
from ottla.spark.sql.lexer import Cut, split_statements
from ottla.spark.sql.parser import parse
from ottla.spark.sql.running import Runner
from ottla.spark.sql.statements import NEEDS_SPARK, Create


def run_all(text: str, runner: Runner, session: Session) -> int:
    """Check all statements of a text, then run them up to the first that fails. Returns the exit code."""
    cuts = split_statements(text)
    topics = functools.cache(runner.cluster.topics)
    statements = check_all(cuts, runner.catalog, runner.settings, topics, has_grammar=not session.is_remote)
    if any(isinstance(each, NEEDS_SPARK) or (isinstance(each, Create) and each.query) for each in statements):
        session.check()
    return 0 if all(run_one(cut, runner, session, cuts) for cut in cuts) else 1


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
    except SqlSyntaxError as error:
        warn(str(error))
        return False
    except (OttlaError, SparkOptionError, OSError) as error:
        warn(place + explain(error))
        return False
    except Exception as error:
        session.keep_trace(error, cut.text)
        sentence = spark_sentence(error, cut.text)
        warn(f"{place}{sentence}\n({session.log} has the trace)", lines=True)
        return False
    return True
