"""What a run has done, at its end: a table, lines or JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.cli.common.output import is_for_people, print_json, print_table, say, warn

if TYPE_CHECKING:
    from ottla.spark.pipelines.running import Totals


def print_summary(totals: Totals, as_json: bool) -> None:
    """Print rows, batches and lag of each flow, and what is wrong with its data."""
    flows = [
        {
            "flow": name,
            "rows": rows,
            "batches": totals.batches[name],
            "lag": totals.lag[name],
            "checks": [each.as_json() for each in totals.checks.get(name, {}).values()],
        }
        for name, rows in totals.rows.items()
    ]
    if as_json:
        print_json({"flows": flows, "seconds": round(totals.seconds, 1)})
    elif not flows:
        say(f"No new records; looked for {totals.seconds:.1f} s.")
    elif is_for_people(as_json):
        rows = [(each["flow"], f"{each['rows']:,}", each["batches"], each["lag"]) for each in flows]
        print_table(f"Done in {totals.seconds:.1f} s", ("Flow", "#Rows", "#Batches", "#Lag"), rows)
    else:
        for each in flows:
            lag = "-" if each["lag"] is None else str(each["lag"])
            say(str(each["flow"]), f"{each['rows']} rows", f"{each['batches']} batches", f"lag {lag}")
    if not as_json:
        for name, checks in totals.checks.items():
            for check in checks.values():
                if check.bad:
                    warn(f"the flow {name}: {check.text()}")
