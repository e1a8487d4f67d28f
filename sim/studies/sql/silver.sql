-- Silver: tables about one run, one request, one failover, made from the events of one wave. Table
-- `ev` has the rows of histories, `bronze` all rows (`sim/studies/bronze.py`).

-- runs: one row per run
SELECT b.run_id, b.variant, b.seed, b.judged,
  CASE WHEN b.kind = 'breakdown' THEN 'broke' ELSE b.code END AS verdict,
  b.told AS reason, b.aux AS steps, b.off AS events, b.log_index AS choices, b.chain AS digest,
  b.t_us AS simulated_us,
  COALESCE(e.handed, 0) AS handed, COALESCE(e.acknowledged, 0) AS acknowledged,
  COALESCE(e.faults, 0) AS faults,
  CASE WHEN b.kind = 'breakdown' THEN 1 ELSE 0 END AS broke
FROM bronze b
LEFT JOIN (
  SELECT run_id,
    SUM(CASE WHEN kind = 'inv' THEN 1 ELSE 0 END) AS handed,
    SUM(CASE WHEN kind = 'ok' THEN 1 ELSE 0 END) AS acknowledged,
    SUM(CASE WHEN kind = 'fault' THEN 1 ELSE 0 END) AS faults
  FROM ev
  GROUP BY run_id
) e ON e.run_id = b.run_id
WHERE b.kind IN ('run', 'breakdown');

-- python_verdicts: what the simulator's own judge finds broken in judged runs
SELECT run_id, variant, code AS invariant
FROM bronze
WHERE kind = 'verdict';
