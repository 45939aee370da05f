"""The cluster's metadata as immutable images, one per subject, and the deltas that replay records onto them."""
