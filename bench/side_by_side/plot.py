"""The plot of a run: one bar per figure, its ratio, and a mark where the goal is. Hand-written SVG, no library. Pure."""

from html import escape

from bench.side_by_side.figures import APACHE, Figure, Results

LABEL_WIDTH, BAR_WIDTH, VERDICT_WIDTH = 400, 420, 220
ROW_HEIGHT, BAR_HEIGHT, TOP, BOTTOM = 26, 14, 58, 34
RATIO_MAX = 2.0
REACHED, MISSED, NO_GOAL, INK, FAINT = "#2a9d6f", "#d1495b", "#8d99ae", "#24292f", "#d0d7de"
FONT = f'font-family="system-ui, sans-serif" font-size="12" fill="{INK}"'


def svg_text(results: Results, other: str = APACHE, ratio_max: float = RATIO_MAX) -> str:
    """The whole picture. A bar that exceeds the axis is cut off there; its number is still shown."""
    figures = list(results.figures.values())
    width = LABEL_WIDTH + BAR_WIDTH + VERDICT_WIDTH
    height = TOP + ROW_HEIGHT * len(figures) + BOTTOM
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" {FONT}>',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="22" font-size="15" font-weight="600">Ottla beside {escape(other)}: ratios within one run</text>',
        '<text x="12" y="40">The black mark is the goal (≥: the bar must pass it; ≤: it must not); red bars missed it.</text>',
        *_axis(height, ratio_max),
    ]
    for index, figure in enumerate(figures):
        lines += _bar(figure, TOP + ROW_HEIGHT * index, ratio_max)
    return "\n".join([*lines, "</svg>", ""])


def _x(ratio: float, ratio_max: float) -> float:
    return LABEL_WIDTH + BAR_WIDTH * min(max(ratio, 0.0), ratio_max) / ratio_max


def _axis(height: int, ratio_max: float) -> list[str]:
    lines = []
    for step in range(5):
        ratio = step * ratio_max / 4
        x = _x(ratio, ratio_max)
        stroke = INK if ratio == 1 else FAINT
        lines.append(f'<line x1="{x:g}" y1="{TOP - 6}" x2="{x:g}" y2="{height - BOTTOM}" stroke="{stroke}" stroke-width="1"/>')
        label = "1 × (the other)" if ratio == 1 else f"{ratio:g} ×"
        lines.append(f'<text x="{x:g}" y="{height - BOTTOM + 18}" text-anchor="middle">{label}</text>')
    return lines


def _bar(figure: Figure, top: int, ratio_max: float) -> list[str]:
    ratio, goal = figure.ratio, figure.goal
    colour = NO_GOAL if goal is None else REACHED if goal.reached(ratio) else MISSED
    middle = top + ROW_HEIGHT / 2
    y = middle - BAR_HEIGHT / 2
    end = _x(ratio, ratio_max)
    of = f" / {figure.reference_name}" if figure.reference else ""
    lines = [
        f'<text x="{LABEL_WIDTH - 10}" y="{middle + 4:g}" text-anchor="end">{escape(figure.what + of)}</text>',
        f'<rect x="{LABEL_WIDTH}" y="{y:g}" width="{max(end - LABEL_WIDTH, 1):.1f}" height="{BAR_HEIGHT}" fill="{colour}"/>',
        f'<text x="{end + 6:.1f}" y="{middle + 4:g}">{ratio:.2f}</text>',
    ]
    if goal is not None:
        x = _x(goal.ratio, ratio_max)
        lines.append(f'<rect x="{x - 1.5:.1f}" y="{y - 3:g}" width="3" height="{BAR_HEIGHT + 6}" fill="#000000"/>')
        text = f"{goal} {figure.verdict}"
        lines.append(f'<text x="{LABEL_WIDTH + BAR_WIDTH + 40}" y="{middle + 4:g}">{escape(text)}</text>')
    return lines
