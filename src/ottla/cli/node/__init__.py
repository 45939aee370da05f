"""Commands that run a node in this very process: `ottla up` and `ottla server start`."""
