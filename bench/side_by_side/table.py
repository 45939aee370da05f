"""The table of a run: for the terminal, and as Markdown for docs/benchmarks.md. Pure."""

from bench.side_by_side.figures import APACHE, OTTLA, Figure, Results, ratio_text, samples_text


def heading(other: str) -> tuple[str, ...]:
    """The names of the columns."""
    return "what", other, OTTLA, "ratio", "goal", ""


def cells(figure: Figure) -> tuple[str, ...]:
    """One row; figures are medians, with the smallest and the largest in brackets."""
    goal = str(figure.goal) if figure.goal else ""
    what = f"{figure.what}, {figure.unit}"
    if figure.reference:
        what += f" ({figure.reference_name}: {samples_text(figure.reference)})"
    return what, samples_text(figure.other), samples_text(figure.ottla), ratio_text(figure), goal, figure.verdict


def terminal_text(results: Results, other: str = APACHE) -> str:
    """The table in columns of equal width."""
    rows = [heading(other), *(cells(figure) for figure in results.figures.values())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def markdown_lines(results: Results, other: str = APACHE) -> list[str]:
    """The table in Markdown, with missed goals in bold."""
    names = heading(other)
    lines = ["| " + " | ".join(names) + " |", "|---" + "|---:" * (len(names) - 2) + "|---|"]
    for figure in results.figures.values():
        row = list(cells(figure))
        if row[-1].startswith("missed"):
            row[-1] = f"**{row[-1]}**"
        lines.append("| " + " | ".join(row) + " |")
    return lines
