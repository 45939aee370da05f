"""Tables of cases with Apache Kafka's responses: settings, refusals, messages."""
