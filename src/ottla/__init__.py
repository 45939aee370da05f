"""Ottla: Kafka in Python, in Apache Kafka 4.3's protocol and disk formats.

No imports here, on purpose: importing one room must not load the others.
"""

__version__ = "0.1.0.dev0"
