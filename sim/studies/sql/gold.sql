-- Gold: one row per variant and what it is about, over silver tables and `variants`. Shares have
-- Wilson's interval of 95 % (z = 1.959964).

-- kills: how many runs an invariant or the broker itself stopped
SELECT variant, runs, failed, 1.0 * failed / runs AS share,
  (failed + 1.9207295) / (runs + 3.841459)
    - 1.959964 * SQRT(1.0 * failed * (runs - failed) / runs + 0.96036475) / (runs + 3.841459) AS low,
  (failed + 1.9207295) / (runs + 3.841459)
    + 1.959964 * SQRT(1.0 * failed * (runs - failed) / runs + 0.96036475) / (runs + 3.841459)
    AS high
FROM (
  SELECT variant, COUNT(*) AS runs,
    SUM(CASE WHEN verdict IN ('failed', 'broke') THEN 1 ELSE 0 END) AS failed
  FROM runs
  GROUP BY variant
) counted;
