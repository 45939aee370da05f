"""The settings of the transaction coordinator. The host builds them from the broker's, and again when those change."""

from __future__ import annotations

from typing import NamedTuple


class TransactionSettings(NamedTuple):
    """Named as the broker's settings; see docs/configuration.md."""

    transaction_max_timeout_ms: int = 900_000
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
    transactional_id_expiration_ms: int = 604_800_000
    transaction_two_phase_commit_enable: bool = False
    transaction_version: int = 2
    """The cluster's level of the feature transaction.version."""
