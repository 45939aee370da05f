"""Every client warns of settings without effect, when it is made or first used."""

import asyncio
import logging
from typing import Any

import pytest

from ottla import Admin, Consumer, Producer, aio

NOWHERE = "127.0.0.1:1"
NO_EFFECT = {"metrics_recording_level": "DEBUG"}


@pytest.mark.parametrize("client", [Producer, Consumer, Admin])
def test_setting_without_effect_is_warned_of(client: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "ottla"), client(NOWHERE, **NO_EFFECT):
        pass
    assert [record.getMessage() for record in caplog.records if "metrics.recording.level" in record.getMessage()]


@pytest.mark.parametrize("client", [aio.Producer, aio.Consumer, aio.Admin])
def test_setting_without_effect_is_warned_of_with_asyncio(client: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def use() -> None:
        async with client(NOWHERE, **NO_EFFECT):
            pass

    with caplog.at_level(logging.WARNING, "ottla"):
        asyncio.run(use())
    assert [record.getMessage() for record in caplog.records if "metrics.recording.level" in record.getMessage()]


def test_producer_whose_acks_turn_idempotence_off_warns(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "ottla"), Producer(NOWHERE, acks=1):
        pass
    assert "enable.idempotence" in caplog.text


def test_producer_with_defaults_warns_of_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "ottla"), Producer(NOWHERE):
        pass
    # `ottla.client` may have warned by then that nothing listens there.
    assert [record.getMessage() for record in caplog.records if record.name != "ottla.client"] == []
