"""Batches, partition logs and log directories; logs that Apache Kafka wrote or reads."""
