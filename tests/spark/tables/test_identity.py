"""The identity of batches."""

from __future__ import annotations

import pytest

from ottla.spark.errors import SparkOptionError
from ottla.spark.tables.writers import identity_of_options


def test_options_name_a_batch() -> None:
    assert identity_of_options({}) is None
    assert identity_of_options({"txnAppId": "x", "txnVersion": "12"}) == ("x", 12)
    for options in ({"txnAppId": "x"}, {"txnVersion": "1"}, {"txnAppId": "x", "txnVersion": "one"}):
        with pytest.raises(SparkOptionError, match="txnAppId and txnVersion belong together"):
            identity_of_options(options)
