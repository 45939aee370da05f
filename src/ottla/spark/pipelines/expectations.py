"""Expectations: conditions that the rows of a flow or view must meet, and what becomes of rows that do not.

    from ottla.spark.pipelines import expect, expect_or_drop

    @dp.temporary_view
    @expect("has a customer", "customer IS NOT NULL")
    @expect_or_drop("valid id", "id > 0")
    def parsed_orders(): …

| decorator | rows that do not meet the condition |
|---|---|
| `expect` | are kept and counted |
| `expect_or_drop` | are left out |
| `expect_or_fail` | stop the flow |
| `expect_or_dead_letter` | are sent to a topic and left out |

The `expect_all…` forms take a dict of names and conditions. A condition is Spark SQL over the columns of the result; null is
not met. The decorators work under `spark-pipelines` too, which shows no counts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ottla.spark.pipelines import counts
from ottla.spark.pipelines.counts import DEAD_LETTER, DROP, EXPECT_PREFIX, FAIL, WARN
from ottla.spark.pipelines.errors import PipelineError

Query = Callable[[], Any]
FLAG = "_ottla_expect_"
SHOWN_CHARACTERS = 200
ATTRIBUTE = "__ottla_expectations__"
_BASE = "__ottla_query__"


@dataclass(frozen=True)
class Expectation:
    """A condition, and what happens to rows that do not meet it."""

    name: str
    condition: str
    action: str = WARN
    topic: str | None = None
    """For dead letters; None for the pipeline's `spark.ottla.deadLetters`."""

    def text(self) -> str:
        """`valid id: id > 0, else drop`."""
        return f"{self.name}: {self.condition}, else {self.action}{f' to {self.topic}' if self.topic else ''}"


def expect(name: str, condition: str) -> Callable[[Query], Query]:
    """Count the rows that do not meet the condition, and keep them."""
    return _decorator([Expectation(name, condition)], "expect")


def expect_or_drop(name: str, condition: str) -> Callable[[Query], Query]:
    """Count the rows that do not meet the condition, and leave them out."""
    return _decorator([Expectation(name, condition, DROP)], "expect_or_drop")


def expect_or_fail(name: str, condition: str) -> Callable[[Query], Query]:
    """Stop the flow at a row that does not meet the condition."""
    return _decorator([Expectation(name, condition, FAIL)], "expect_or_fail")


def expect_or_dead_letter(name: str, condition: str, topic: str | None = None) -> Callable[[Query], Query]:
    """Send the rows that do not meet the condition to a topic, with the reason in headers, and leave them out."""
    return _decorator([Expectation(name, condition, DEAD_LETTER, topic)], "expect_or_dead_letter")


def expect_all(expectations: Mapping[str, str]) -> Callable[[Query], Query]:
    """`expect` for each name and condition."""
    return _decorator([Expectation(*each) for each in expectations.items()], "expect_all")


def expect_all_or_drop(expectations: Mapping[str, str]) -> Callable[[Query], Query]:
    """`expect_or_drop` for each name and condition."""
    return _decorator([Expectation(*each, DROP) for each in expectations.items()], "expect_all_or_drop")


def expect_all_or_fail(expectations: Mapping[str, str]) -> Callable[[Query], Query]:
    """`expect_or_fail` for each name and condition."""
    return _decorator([Expectation(*each, FAIL) for each in expectations.items()], "expect_all_or_fail")


def expect_all_or_dead_letter(expectations: Mapping[str, str], topic: str | None = None) -> Callable[[Query], Query]:
    """`expect_or_dead_letter` for each name and condition."""
    made = [Expectation(*each, DEAD_LETTER, topic) for each in expectations.items()]
    return _decorator(made, "expect_all_or_dead_letter")


def expectations_of(function: Any) -> tuple[Expectation, ...]:
    """The expectations that decorators have given to a query function."""
    return tuple(getattr(function, ATTRIBUTE, ()))


def _decorator(expectations: list[Expectation], decorator: str) -> Callable[[Query], Query]:
    for each in expectations:
        if not isinstance(each.name, str) or not isinstance(each.condition, str):
            raise PipelineError(f"@{decorator} takes a name and a condition as text, such as ('valid id', 'id > 0')")

    def decorate(function: Query) -> Query:
        if not callable(function):
            raise PipelineError(
                f"@{decorator} has no function to check: write it below @dp.table, @dp.temporary_view or @dp.append_flow, "
                "which return nothing"
            )
        base: Query = getattr(function, _BASE, function)
        both = (*expectations, *expectations_of(function))
        check_names(both, getattr(base, "__name__", "the flow"))

        @functools.wraps(base)
        def guarded() -> Any:
            return checked(base(), both, base.__name__)

        setattr(guarded, _BASE, base)
        setattr(guarded, ATTRIBUTE, both)
        return guarded

    return decorate


def check_names(expectations: Sequence[Expectation], flow: str) -> None:
    """Two expectations of a flow must not have the same name."""
    names = [each.name for each in expectations]
    for name in names:
        if names.count(name) > 1:
            raise PipelineError(f"{flow} has two expectations with the name {name}: give each a name of its own")


def checked(df: Any, expectations: Sequence[Expectation], label: str) -> Any:
    """The rows, counted and checked: those to drop are left out, those to refuse fail the task."""
    from pyspark.sql import functions as F

    if not hasattr(df, "isStreaming"):
        return df  # the pipeline says that the function returns no DataFrame
    names = df.columns
    flags = {
        FLAG + str(number): ~F.coalesce(F.expr(each.condition).cast("boolean"), F.lit(False))
        for number, each in enumerate(expectations)
    }
    row = F.to_json(F.struct(*(F.col(f"`{name}`") for name in names)))
    shown = F.left(row, F.lit(SHOWN_CHARACTERS))
    topics = {each.name: _options(each, label) for each in expectations if each.action == DEAD_LETTER}
    columns = [F.count(F.lit(1)).alias("rows")]
    for flag, each in zip(flags, expectations, strict=True):
        columns.append(F.count_if(F.col(flag)).alias(f"{each.action}:{each.name}"))
        columns.append(F.max(F.when(F.col(flag), shown)).alias(f"example:{each.name}"))
        columns.append(F.max(F.lit(each.condition)).alias(f"condition:{each.name}"))
        if each.name in topics:
            columns.append(F.max(F.lit(topics[each.name]["topic"])).alias(f"topic:{each.name}"))
    # The check is a node that filters are not pushed through: conditions are evaluated once, before anything is left out.
    made = counts.observe(df.withColumns(flags), EXPECT_PREFIX, columns, label)
    for flag, each in zip(flags, expectations, strict=True):
        if each.action == FAIL:
            message = F.concat(F.lit(f"a row does not meet the expectation {each.name} ({each.condition}): "), shown)
            made = made.where(F.when(F.col(flag), F.raise_error(message).cast("boolean")).otherwise(F.lit(True)))
    made = _sent(made, names, dict(zip(flags, expectations, strict=True)), topics)
    for flag, each in zip(flags, expectations, strict=True):
        if each.action == DROP:
            made = made.where(~F.col(flag))
    return made.drop(*flags)


def _sent(df: Any, names: list[str], flags: Mapping[str, Expectation], topics: Mapping[str, dict[str, str]]) -> Any:
    """Without the rows that were sent as dead letters: one letter for a row and topic, with all reasons."""
    from pyspark.sql import functions as F

    from ottla.spark.dead_letters import send_rows_and_keep_rest

    made = df
    for topic in dict.fromkeys(each["topic"] for each in topics.values()):
        mine = {flag: each for flag, each in flags.items() if each.name in topics and topics[each.name]["topic"] == topic}
        reasons = [F.when(F.col(flag), F.lit(f"{each.name} ({each.condition}) is not met")) for flag, each in mine.items()]
        reason = F.concat_ws("; ", *reasons)
        options = next(each for each in topics.values() if each["topic"] == topic)
        made = send_rows_and_keep_rest(made, names, F.when(reason != "", reason), options)
    return made


def _options(expectation: Expectation, label: str) -> dict[str, str]:
    from ottla.spark.dead_letters import letter_options

    return letter_options(expectation.topic, f"the expectation {expectation.name} of {label}")
