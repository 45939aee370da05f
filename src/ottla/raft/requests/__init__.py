"""The requests between replicas: one file each, with the request, its handling, and the handling of its answer."""

from importlib import import_module
from typing import Any, Final

API_VERSIONS = 18

_MODULES: Final[dict[int, str]] = {
    1: "fetch",
    52: "vote",
    53: "begin_quorum_epoch",
    54: "end_quorum_epoch",
    59: "fetch_snapshot",
    API_VERSIONS: "api_versions",
    80: "add_raft_voter",
    81: "remove_raft_voter",
    82: "update_raft_voter",
}
"""API key → module. Imported on first use: a quorum of one needs none of them."""


def requests_module(key: int) -> Any:
    return import_module(f"{__name__}.{_MODULES[key]}")
