-- Gold: one row per variant and what it is about, over silver tables and `variants`. Shares have
-- Wilson's interval of 95 % (z = 1.959964).

-- kills: how many runs an invariant or the broker itself stopped
SELECT variant, runs, failed, f / n AS share,
  (f + 1.9207295E0) / (n + 3.841459E0)
    - 1.959964E0 * SQRT(f * (n - f) / n + 0.96036475E0) / (n + 3.841459E0) AS low,
  (f + 1.9207295E0) / (n + 3.841459E0)
    + 1.959964E0 * SQRT(f * (n - f) / n + 0.96036475E0) / (n + 3.841459E0) AS high
FROM (
  SELECT variant, runs, failed, CAST(runs AS DOUBLE) AS n, CAST(failed AS DOUBLE) AS f
  FROM (
    SELECT variant, COUNT(*) AS runs,
      SUM(CASE WHEN verdict IN ('failed', 'broke') THEN 1 ELSE 0 END) AS failed
    FROM runs
    GROUP BY variant
  ) counted
) numbers;
