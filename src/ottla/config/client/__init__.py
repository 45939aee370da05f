"""The settings of Kafka's clients: typed, with Kafka's names, checked together, with suggestions for misspelt names."""

from ottla.config.client.build import admin_settings, consumer_settings, producer_settings
from ottla.config.client.classes import PythonPath, load
from ottla.config.client.security import SecuritySettings
from ottla.config.client.settings import AdminSettings, ClientSettings, ConsumerSettings, ProducerSettings

__all__ = [
    "AdminSettings",
    "ClientSettings",
    "ConsumerSettings",
    "ProducerSettings",
    "PythonPath",
    "SecuritySettings",
    "admin_settings",
    "consumer_settings",
    "load",
    "producer_settings",
]
