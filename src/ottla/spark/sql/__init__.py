"""SQL over topics on Spark SQL: declared streams and tables, settings, batch and live queries, inserts."""
