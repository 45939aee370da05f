"""The `verifiable-producer` and `verifiable-consumer` verbs: clients whose every step is an event in JSON, for system tests."""
