"""The table of a run: for the terminal, and as Markdown for README and docs/benchmarks.md. Pure."""

from bench.side_by_side.figures import Figure, Results, ratio_text, samples_text

HEADING = ("what", "Apache Kafka", "Ottla", "ratio", "goal", "")


def cells(figure: Figure) -> tuple[str, ...]:
    """One row; figures are medians, with the smallest and the largest in brackets."""
    goal = str(figure.goal) if figure.goal else ""
    what = f"{figure.what}, {figure.unit}"
    if figure.reference:
        what += f" ({figure.reference_name}: {samples_text(figure.reference)})"
    return what, samples_text(figure.apache), samples_text(figure.ottla), ratio_text(figure), goal, figure.verdict


def terminal_text(results: Results) -> str:
    """The table in columns of equal width."""
    rows = [HEADING, *(cells(figure) for figure in results.figures.values())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADING))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def markdown_lines(results: Results) -> list[str]:
    """The table in Markdown, with missed goals in bold."""
    lines = ["| " + " | ".join(HEADING) + " |", "|---" + "|---:" * (len(HEADING) - 2) + "|---|"]
    for figure in results.figures.values():
        row = list(cells(figure))
        if row[-1].startswith("missed"):
            row[-1] = f"**{row[-1]}**"
        lines.append("| " + " | ".join(row) + " |")
    return lines
