"""The sink: options (driver), writing (executors), ending of transactions (driver)."""
