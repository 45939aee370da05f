"""The pages, a module for each subject. `load` imports them, which adds their routes."""

from importlib import import_module

SUBJECTS = (
    "overview",
    "topics",
    "records",
    "downloads",
    "sending",
    "groups",
    "group_actions",
    "transactions",
    "reassignments",
    "nodes",
    "security",
    "schemas",
    "pipelines",
    "sql",
)


def load() -> None:
    """Import every subject."""
    for name in SUBJECTS:
        import_module(f"ottla.console.pages.{name}")
