"""Tables of cases with the answers of Apache Kafka: settings, refusals, messages."""
