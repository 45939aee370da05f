"""The controller: decides how the cluster's metadata changes. Requests in, records and responses out; no await, no clock."""
