"""Draws docs/first-commands.svg: a terminal with the first commands and what they print.

    python3 tools/first_commands_svg.py

The picture has its own background, so it reads the same on light and dark pages.
"""

from html import escape
from pathlib import Path

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "first-commands.svg"
WIDTH, LINE_HEIGHT, TOP, LEFT = 800, 21, 58, 22
BACKGROUND, BAR, INK, FAINT, PROMPT = "#1e2430", "#2b3342", "#e6e9ef", "#8d99ae", "#5ec49b"
LINES = (
    "$ ottla up",
    "Ottla is up at 127.0.0.1:9092 (cluster ZPRgAHuwSXGVfhHYVlQb1w, node 1; data in …/ottla-data)",
    "",
    "# in another terminal",
    "$ ottla topics create greetings --partitions 3",
    "Created topic greetings.",
    "$ echo hello | ottla produce greetings",
    "$ ottla consume greetings --from-beginning --max-messages 1",
    "hello",
    "$ kafka-topics.sh --list --bootstrap-server localhost:9092    # Apache Kafka's own tools work, too",
    "greetings",
)


def picture() -> str:
    height = TOP + LINE_HEIGHT * len(LINES)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">',
        "<title>A node is started, a topic created, a record written and read</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="{BACKGROUND}"/>',
        f'<path d="M0 32V8a8 8 0 0 1 8-8h{WIDTH - 16}a8 8 0 0 1 8 8v24z" fill="{BAR}"/>',
        *(f'<circle cx="{20 + 20 * at}" cy="16" r="6" fill="{FAINT}"/>' for at in range(3)),
        '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="13" xml:space="preserve">',
    ]
    for number, line in enumerate(LINES):
        y = TOP + LINE_HEIGHT * number
        if line.startswith("$ "):
            command, mark, comment = line[2:].partition("    #")
            text = f'<tspan fill="{PROMPT}">$ </tspan>{escape(command)}<tspan fill="{FAINT}">{escape(mark + comment)}</tspan>'
            parts.append(f'<text x="{LEFT}" y="{y}" fill="{INK}">{text}</text>')
        elif line:
            parts.append(f'<text x="{LEFT}" y="{y}" fill="{FAINT}">{escape(line)}</text>')
    return "\n".join([*parts, "</g>", "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
