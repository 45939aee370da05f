"""The settings of simulated clients are settings of every client."""

from ottla.config.client import admin_settings, consumer_settings, producer_settings
from ottla.sim.clients.client import CLIENT_SETTINGS, REQUEST_TIMEOUT_MS


def test_every_client_takes_them() -> None:
    for settings in (producer_settings, consumer_settings, admin_settings):
        made = settings("node:9092", None, CLIENT_SETTINGS)
        assert made.request_timeout_ms == REQUEST_TIMEOUT_MS
        assert made.notices == ()
