"""Words for texts that people read: log lines, errors, what commands print. Imports nothing of Ottla's."""

from collections.abc import Iterable


def counted(count: int, noun: str, plural: str = "") -> str:
    """`1 record`, `2,000 records`; `plural` where it is not `noun` with an s."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def sized(size_bytes: int) -> str:
    """`512 bytes`, `1.5 MB`: in powers of 1000, as disks are sold."""
    size, unit = float(size_bytes), ""
    for unit in ("kB", "MB", "GB", "TB"):  # noqa: B007  # the last one stays
        size /= 1000
        if size < 999.95:
            break
    return counted(size_bytes, "byte") if size_bytes < 1000 else f"{size:,.1f} {unit}"


def listed(names: list[str], shown_max: int = 5) -> str:
    """`a, b and c`; beyond `shown_max` names `a, b, c, d, e and 7 more`."""
    shown = names[:shown_max]
    if len(names) > shown_max:
        return f"{', '.join(shown)} and {len(names) - shown_max:,} more"
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else "".join(shown)


def near_words(word: str, choices: Iterable[str], count: int = 1, cutoff: float = 0.6) -> list[str]:
    """At most `count` of `choices` that are similar to the misspelt `word`, the most similar first."""
    import difflib  # imported late: needed only for a mistake, and slow to import

    return difflib.get_close_matches(word, list(choices), n=count, cutoff=cutoff)
