-- From a feed of changes (a null value deletes its key) to the latest state of each key.
CREATE STREAMING TABLE customer_changes AS
SELECT CAST(key AS STRING) AS id, CAST(value AS STRING) AS value, partition, offset
FROM STREAM changes;

CREATE MATERIALIZED VIEW customers AS
SELECT id, latest.name AS name
FROM (
  SELECT id, from_json(max_by(value, offset), 'name STRING') AS latest
  FROM customer_changes GROUP BY id, partition
)
WHERE latest IS NOT NULL;
