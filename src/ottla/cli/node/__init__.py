"""Commands that run a node in their own process: `ottla up` and `ottla server start`."""
