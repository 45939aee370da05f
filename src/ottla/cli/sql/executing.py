"""Runs the statements of a text and shows their errors: one or two lines each, the trace in the log file."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ottla.cli.common.explaining import explain
from ottla.cli.common.output import warn
from ottla.cli.sql.session import Session
from ottla.errors import OttlaError
from ottla.spark.errors import SparkOptionError
from ottla.spark.java import NoJava
from ottla.spark.session import SessionFailed
from ottla.spark.sql.checking import analysis_error, check_all, check_statement_syntax
from ottla.spark.sql.errors import PlacedSqlError, spark_sentence
from ottla.spark.sql.interrupts import Interrupted
from ottla.spark.sql.lexer import Cut, split_statements
from ottla.spark.sql.parser import parse
from ottla.spark.sql.running import Runner
from ottla.spark.sql.statements import NEEDS_SPARK, Create, Insert, Select, Statement


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
