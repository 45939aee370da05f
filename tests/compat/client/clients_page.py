"""The examples of docs/clients.md, as text."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "clients.md"
ADDRESS = '"localhost:9092"'
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)

_RECIPE = re.compile(r"^def (at_\w+|exactly_\w+)\(", flags=re.MULTILINE)

RECIPES = {found[1]: block for block in BLOCKS if (found := _RECIPE.search(block))}
"""The recipes, by the name of their function."""

EXAMPLES = [block for block in BLOCKS if not _RECIPE.search(block)]
"""The examples that run to their end."""


def title(example: str) -> str:
    """A name for an example in the output of pytest: what its first statement after the imports says."""
    lines = [line for line in example.splitlines() if line and not line.startswith(("from ", "import "))]
    return re.sub(r"\W+", "_", lines[0])[:50].strip("_")
