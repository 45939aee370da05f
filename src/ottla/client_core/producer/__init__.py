"""The producer's machines: batches under construction, sending, idempotence and transactions. Pure, except for one lock."""
