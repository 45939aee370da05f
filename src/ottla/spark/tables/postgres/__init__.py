"""PostgreSQL tables as sinks (append, upsert) and sources (snapshot, incremental), with psycopg and COPY."""
