-- Turns each order into an invoice with tax. A whole pipeline in SQL.
CREATE TEMPORARY VIEW parsed AS
SELECT key, from_json(CAST(value AS STRING), 'id INT, amount DOUBLE') AS o
FROM STREAM orders;

CREATE FLOW make_invoices AS INSERT INTO invoices BY NAME
SELECT key, to_json(named_struct('order', o.id, 'total', round(o.amount * 1.2, 2))) AS value
FROM STREAM parsed;
