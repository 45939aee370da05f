"""The assignors of classic consumer groups, equal to Apache Kafka's: range, round robin, sticky, cooperative-sticky."""
