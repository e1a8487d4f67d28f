-- What producers were answered, and what consumers read.

-- sim-I01
SELECT a.run_id, COUNT(*) AS n
FROM acked a
LEFT JOIN canon c ON c.run_id = a.run_id AND c.partition = a.partition AND c.value = a.value
LEFT JOIN erased e ON e.run_id = a.run_id AND e.eid = a.eid
LEFT JOIN cut_short x ON x.run_id = a.run_id
WHERE x.run_id IS NULL AND c.off IS NULL AND e.eid IS NULL
GROUP BY a.run_id;

-- sim-I06
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT a.run_id, a.eid
  FROM acked a
  JOIN canon c ON c.run_id = a.run_id AND c.partition = a.partition AND c.value = a.value
  LEFT JOIN log_start s ON s.run_id = a.run_id AND s.partition = a.partition
  WHERE a.off >= 0 AND (s.start_off IS NULL OR a.off >= s.start_off)
  GROUP BY a.run_id, a.eid HAVING MAX(CASE WHEN c.off = a.off THEN 1 ELSE 0 END) = 0
) elsewhere
GROUP BY run_id;

-- sim-I07
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT run_id
  FROM acked WHERE off >= 0
  GROUP BY run_id, partition, off HAVING MIN(op) <> MAX(op)
  UNION ALL
  SELECT run_id
  FROM acked WHERE off >= 0
  GROUP BY run_id, op HAVING MIN(off) <> MAX(off)
) twice
GROUP BY run_id;

-- sim-I08
SELECT i.run_id, COUNT(*) AS n
FROM (
  SELECT run_id, eid, kind, op,
    MAX(CASE WHEN kind = 'ok' AND acks = -1 AND off >= 0 THEN off END) OVER (
      PARTITION BY run_id, partition ORDER BY eid
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS lowest
  FROM ev
  WHERE kind IN ('inv', 'ok')
) i
JOIN ev o ON o.run_id = i.run_id AND o.kind = 'ok' AND o.op = i.op AND o.eid > i.eid
WHERE i.kind = 'inv' AND o.acks = -1 AND o.off >= 0 AND o.off <= i.lowest
GROUP BY i.run_id;

-- sim-I09
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT run_id, kind, acks, off,
    MAX(CASE WHEN kind = 'commit' THEN hw END) OVER (
      PARTITION BY run_id, partition ORDER BY eid
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS below
  FROM ev
  WHERE kind IN ('ok', 'commit')
) w
WHERE kind = 'ok' AND acks = -1 AND off >= COALESCE(below, 0)
GROUP BY run_id;

-- sim-I10
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT run_id, kind, off,
    MAX(CASE WHEN kind = 'commit' THEN hw END) OVER (
      PARTITION BY run_id, partition ORDER BY eid
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS below
  FROM ev
  WHERE kind IN ('poll', 'commit')
) w
WHERE kind = 'poll' AND off >= COALESCE(below, 0)
GROUP BY run_id;

-- sim-I11
SELECT w.run_id, COUNT(*) AS n
FROM (
  SELECT p.run_id
  FROM ev p
  LEFT JOIN canon c ON c.run_id = p.run_id AND c.partition = p.partition AND c.off = p.off
  LEFT JOIN log_start s ON s.run_id = p.run_id AND s.partition = p.partition
  WHERE p.kind = 'poll' AND (s.start_off IS NULL OR p.off >= s.start_off)
    AND (c.off IS NULL OR c.value <> p.value)
  UNION ALL
  SELECT c.run_id
  FROM canon c
  JOIN (SELECT DISTINCT run_id FROM ev WHERE kind = 'inv') clients ON clients.run_id = c.run_id
  LEFT JOIN ev i ON i.run_id = c.run_id AND i.kind = 'inv' AND i.value = c.value
    AND i.partition = c.partition
  WHERE i.eid IS NULL
) w
LEFT JOIN cut_short x ON x.run_id = w.run_id
WHERE x.run_id IS NULL
GROUP BY w.run_id;

-- sim-I12
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT run_id, kind, off, start_off,
    LAG(off) OVER (PARTITION BY run_id, partition, kind, client ORDER BY eid) AS last_off,
    LAG(off) OVER (PARTITION BY run_id, partition, reads, client ORDER BY eid) AS asked
  FROM (
    SELECT run_id, partition, eid, kind, client, off,
      CASE WHEN kind IN ('fetch', 'poll') THEN 1 ELSE 0 END AS reads,
      MAX(CASE WHEN kind = 'snapshot' THEN off WHEN kind = 'apply' THEN aux END) OVER (
        PARTITION BY run_id, partition ORDER BY eid
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS start_off
    FROM ev
    WHERE kind IN ('fetch', 'poll', 'snapshot', 'apply')
  ) moves_and_reads
) w
WHERE kind = 'poll' AND (off < COALESCE(last_off + 1, asked)
  OR (off > COALESCE(last_off + 1, asked) AND off > COALESCE(start_off, 0)))
GROUP BY run_id;

-- sim-I13
SELECT f.run_id, COUNT(*) AS n
FROM ev f
JOIN ev i ON i.run_id = f.run_id AND i.kind = 'inv' AND i.op = f.op
JOIN (
  SELECT run_id, partition, value FROM canon
  UNION
  SELECT run_id, partition, value FROM ev WHERE kind = 'poll'
) v ON v.run_id = f.run_id AND v.partition = f.partition AND v.value = i.value
WHERE f.kind = 'fail'
GROUP BY f.run_id;

-- sim-I14
SELECT a.run_id, COUNT(*) AS n
FROM acked a
JOIN (
  SELECT run_id, partition, value, MAX(off) AS off
  FROM canon
  GROUP BY run_id, partition, value
) c ON c.run_id = a.run_id AND c.partition = a.partition AND c.value = a.value
JOIN (
  SELECT g.run_id, g.partition, MIN(g.began) AS began
  FROM (
    SELECT run_id, partition, client, MIN(off) AS began,
      MAX(CASE WHEN kind = 'poll' THEN off + 1 ELSE off END) AS got_to
    FROM ev
    WHERE kind IN ('fetch', 'poll')
    GROUP BY run_id, partition, client
  ) g
  JOIN (
    SELECT run_id, partition, MAX(off) AS last_off FROM canon GROUP BY run_id, partition
  ) e ON e.run_id = g.run_id AND e.partition = g.partition
  WHERE g.got_to > e.last_off
  GROUP BY g.run_id, g.partition
) r ON r.run_id = a.run_id AND r.partition = a.partition
LEFT JOIN log_start s ON s.run_id = a.run_id AND s.partition = a.partition
LEFT JOIN (
  SELECT DISTINCT run_id, partition, value FROM ev WHERE kind = 'poll'
) p ON p.run_id = a.run_id AND p.partition = a.partition AND p.value = a.value
WHERE p.value IS NULL AND c.off >= r.began AND c.off >= COALESCE(s.start_off, 0)
GROUP BY a.run_id;

-- sim-I28
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT run_id, hw,
    MAX(hw) OVER (
      PARTITION BY run_id, partition, client ORDER BY eid
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS highest
  FROM (
    SELECT run_id, partition, client, eid, term, hw,
      MAX(term) OVER (
        PARTITION BY run_id, partition, client ORDER BY eid
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS newest
    FROM ev
    WHERE kind = 'fetch'
  ) f
  WHERE term = newest
) w
WHERE hw < highest
GROUP BY run_id;

-- sim-I32
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT e.run_id
  FROM ev e
  LEFT JOIN ev i ON i.run_id = e.run_id AND i.kind = 'inv' AND i.op = e.op
  WHERE e.kind IN ('ok', 'fail', 'info') AND i.op IS NULL
  UNION ALL
  SELECT run_id
  FROM ev
  WHERE kind IN ('ok', 'fail', 'info')
  GROUP BY run_id, op HAVING COUNT(*) > 1
) ends
GROUP BY run_id;

-- sim-I44
SELECT run_id, COUNT(*) AS n
FROM ev
WHERE kind = 'late' AND client IS NOT NULL AND value > aux + 100000
GROUP BY run_id;
