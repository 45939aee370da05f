"""Options of a run: rows, rounds, amount of data. Read from the environment, for `make bench-servers ROWS=… ROUNDS=…`."""

from collections.abc import Mapping
from dataclasses import dataclass

from bench.side_by_side.errors import BadOption

ROWS = (
    "start",
    "produce",
    "memory",
    "consume",
    "latency",
    "groups",
    "offsets",
    "transactions",
    "raw",
    "many",
    "compaction",
    "secure",
    "micro",
)
"""All rows, in the order they run."""

QUICK_ROWS = tuple(row for row in ROWS if row != "micro")
"""Not the micro-benchmarks: QUICK does not make them shorter."""

ALIASES = {"cpu": "produce"}
"""Names of figures that another row measures too."""

PRODUCE_ROUNDS = 3
QUICK_ROUNDS = 1


@dataclass(frozen=True, slots=True)
class Options:
    """Rows to run (a row, or `row:part` for one of its parts), rounds of each, small data or not, whether results are kept."""

    rows: tuple[str, ...] = ROWS
    rounds: int = PRODUCE_ROUNDS
    quick: bool = False
    save: bool = True

    def wants(self, row: str) -> bool:
        return any(each == row or each.startswith(f"{row}:") for each in self.rows)

    def wants_part(self, row: str, part: str) -> bool:
        return row in self.rows or f"{row}:{part}" in self.rows

    def scaled(self, full: int, quick: int) -> int:
        """`quick` if this run uses little data, else `full`."""
        return quick if self.quick else full


def read_options(environment: Mapping[str, str]) -> Options:
    """ROWS, ROUNDS, QUICK and SAVE. Only a full run is kept unless SAVE says otherwise."""
    quick = _flag(environment, "QUICK", False)
    chosen = environment.get("ROWS", "").replace(" ", "")
    rows = tuple(dict.fromkeys(ALIASES.get(name, name) for name in chosen.split(",") if name))
    rows = rows or (QUICK_ROWS if quick else ROWS)
    for name in rows:
        if name.partition(":")[0] not in ROWS:
            raise BadOption(f"ROWS={chosen}: there is no row {name!r}; rows are {', '.join((*ROWS, *ALIASES))}")
    default_rounds = QUICK_ROUNDS if quick else PRODUCE_ROUNDS
    try:
        rounds = int(environment.get("ROUNDS") or default_rounds)
    except ValueError:
        raise BadOption(f"ROUNDS={environment['ROUNDS']}: it must be a number") from None
    if rounds < 1:
        raise BadOption(f"ROUNDS={rounds}: it must be at least 1")
    full = not quick and set(rows) == set(ROWS)
    return Options(rows, rounds, quick, _flag(environment, "SAVE", full))


def _flag(environment: Mapping[str, str], name: str, default: bool) -> bool:
    text = environment.get(name, "")
    return text not in ("0", "no", "false") if text else default
