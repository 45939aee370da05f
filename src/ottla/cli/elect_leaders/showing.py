"""Outcomes of an election as JSON, as a table, and as the lines of kafka-leader-election for pipes."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.cli.common.explaining import explain
from ottla.cli.common.output import is_for_people, print_json, print_table, say, warn
from ottla.cli.elect_leaders.electing import ELECTED, FAILED, NOT_NEEDED, Outcome


def print_outcomes(kind: str, outcomes: Sequence[Outcome], as_json: bool, plain: bool) -> None:
    """Print what became of each partition."""
    if as_json:
        print_json([_as_json(each) for each in outcomes])
    elif not outcomes:
        say(f"No partition needs an election ({kind}).")
    elif is_for_people(as_json, plain):
        rows = [
            (
                each.partition.topic,
                each.partition.partition,
                each.result,
                _leader(each.before),
                _leader(each.leader),
                _remark(each),
            )
            for each in outcomes
        ]
        print_table(None, ("Topic", "#Partition", "Election", "#Leader before", "#Leader now", "=Remark"), rows)
    else:
        _print_lines(kind.upper(), outcomes)


def _leader(leader: int | None) -> str:
    return "none" if leader is None else str(leader)


def _remark(outcome: Outcome) -> str:
    return explain(outcome.error) if outcome.error is not None else outcome.loss or ""


def _print_lines(kind: str, outcomes: Sequence[Outcome]) -> None:
    """Kafka's own lines, and what was lost."""
    elected = ", ".join(str(each.partition) for each in outcomes if each.result == ELECTED)
    unneeded = ", ".join(str(each.partition) for each in outcomes if each.result == NOT_NEEDED)
    if elected:
        say(f"Successfully completed leader election ({kind}) for partitions {elected}")
    if unneeded:
        say(f"Valid replica already elected for partitions {unneeded}")
    for each in outcomes:
        if each.result == FAILED and each.error is not None:
            say(f"Error completing leader election ({kind}) for partition: {each.partition}: {explain(each.error)}")
        if each.loss is not None:
            warn(f"{each.partition}: {each.loss}")


def _as_json(outcome: Outcome) -> dict[str, object]:
    return {
        "topic": outcome.partition.topic,
        "partition": outcome.partition.partition,
        "result": outcome.result.replace(" ", "-"),
        "leaderBefore": outcome.before,
        "leader": outcome.leader,
        "error": None if outcome.error is None else explain(outcome.error),
        "loss": outcome.loss,
    }
