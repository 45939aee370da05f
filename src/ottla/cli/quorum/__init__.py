"""`ottla quorum`: the metadata quorum, the controllers that keep the cluster's metadata."""
