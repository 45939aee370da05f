"""APIs that only a controller's listener serves: brokers and controllers use them among themselves."""
