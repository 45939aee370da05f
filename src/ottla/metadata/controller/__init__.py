"""The controller's decisions on cluster metadata: requests in, records and responses out. No await, no clock."""
