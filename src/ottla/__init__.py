"""Ottla: Kafka in Python, in Apache Kafka 4.3's protocol and disk formats.

This module stays empty of imports on purpose: whoever imports one room pays for that room only.
"""

__version__ = "0.1.0.dev0"
