"""What the verbs that talk to a cluster share."""
