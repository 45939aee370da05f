"""Words for texts that people read: log lines, errors, what commands print. Imports nothing of Ottla's."""


def counted(count: int, noun: str, plural: str = "") -> str:
    """`1 record`, `2,000 records`; `plural` where it is not `noun` with an s."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def listed(names: list[str], shown_max: int = 5) -> str:
    """`a, b and c`; beyond `shown_max` names `a, b, c, d, e and 7 more`."""
    shown = names[:shown_max]
    if len(names) > shown_max:
        return f"{', '.join(shown)} and {len(names) - shown_max:,} more"
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else "".join(shown)
