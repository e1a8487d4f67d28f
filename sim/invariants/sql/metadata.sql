-- What nodes say: where logs begin, which term wrote what, which node leads.

-- sim-I46: a snapshot may contain decisions that come after the last entry of the replica that
-- begins with it. Then that replica's log starts where they say, but not beyond its end
WITH moves AS (
  SELECT run_id, partition, log_index, MAX(aux) AS off
  FROM ev WHERE kind = 'apply' AND aux IS NOT NULL
  GROUP BY run_id, partition, log_index
),
said AS (
  SELECT r.run_id, r.partition, r.node, r.inc, r.eid, r.off, r.hw, r.code,
    COALESCE(MAX(m.off), 0) AS wanted
  FROM ev r
  LEFT JOIN moves m ON m.run_id = r.run_id AND m.partition = r.partition
    AND m.log_index <= r.log_index
  WHERE r.kind = 'logstart'
  GROUP BY r.run_id, r.partition, r.node, r.inc, r.eid, r.off, r.hw, r.code
)
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT run_id
  FROM (
    SELECT run_id, off,
      MAX(off) OVER (
        PARTITION BY run_id, partition, node, inc ORDER BY eid
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS before
    FROM said
  ) b
  WHERE off < before
  UNION ALL
  SELECT run_id FROM said WHERE off > hw OR off < wanted
  UNION ALL
  SELECT s.run_id
  FROM said s
  LEFT JOIN ev t ON t.run_id = s.run_id AND t.partition = s.partition AND t.node = s.node
    AND t.kind = 'snapshot' AND t.eid < s.eid
  WHERE s.off > s.wanted
  GROUP BY s.run_id, s.eid
  HAVING MAX(CASE WHEN t.off IS NOT NULL AND LEAST(t.off, s.hw) = s.off THEN 1 ELSE 0 END) = 0
  UNION ALL
  SELECT s.run_id
  FROM said s
  JOIN settled d ON d.run_id = s.run_id AND d.partition = s.partition AND d.node = s.node
  WHERE s.code = 'final'
  GROUP BY s.run_id, s.partition HAVING MIN(s.off) <> MAX(s.off)
  UNION ALL
  SELECT s.run_id
  FROM said s
  LEFT JOIN ev f ON f.run_id = s.run_id AND f.partition = s.partition AND f.node = s.node
    AND f.kind = 'final' AND f.off = s.off
  WHERE s.code = 'final' AND s.hw > s.off AND f.eid IS NULL
  UNION ALL
  SELECT t.run_id
  FROM ev t
  LEFT JOIN moves m ON m.run_id = t.run_id AND m.partition = t.partition AND m.off = t.off
  WHERE t.kind = 'snapshot' AND t.off > 0 AND m.off IS NULL
    AND t.run_id IN (SELECT run_id FROM said)
) x
GROUP BY run_id;

-- sim-I47: a history without named leaders, or without epochs, is not judged
WITH wrote AS (
  SELECT f.run_id, f.partition, f.term, f.records, MIN(a.off) AS off
  FROM (
    SELECT run_id, partition, term, MIN(log_index) AS first_index, COUNT(off) AS records
    FROM ev WHERE kind = 'apply'
    GROUP BY run_id, partition, term
  ) f
  LEFT JOIN ev a ON a.run_id = f.run_id AND a.partition = f.partition AND a.kind = 'apply'
    AND a.off IS NOT NULL AND a.log_index >= f.first_index
  GROUP BY f.run_id, f.partition, f.term, f.records
),
leaders AS (
  SELECT run_id, partition, term, node, t_us,
    ROW_NUMBER() OVER (PARTITION BY run_id, partition ORDER BY term DESC, eid) AS place
  FROM ev WHERE kind = 'leader'
)
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT e.run_id
  FROM ev e
  LEFT JOIN wrote w ON w.run_id = e.run_id AND w.partition = e.partition AND w.term = e.term
  LEFT JOIN settled d ON d.run_id = e.run_id AND d.partition = e.partition AND d.node = e.node
  WHERE e.kind = 'epoch'
    AND (w.off <> e.off OR (w.term IS NULL AND e.code = 'final' AND d.node IS NOT NULL))
  UNION ALL
  SELECT d.run_id
  FROM ev d
  JOIN settled o ON o.run_id = d.run_id AND o.partition = d.partition AND o.node = d.node
  JOIN wrote w ON w.run_id = d.run_id AND w.partition = d.partition AND w.records > 0
  LEFT JOIN ev e ON e.run_id = d.run_id AND e.partition = d.partition AND e.node = d.node
    AND e.kind = 'epoch' AND e.code = 'final' AND e.term = w.term
  WHERE d.kind = 'logstart' AND d.code = 'final' AND e.eid IS NULL
    AND d.run_id IN (SELECT run_id FROM ev WHERE kind = 'epoch')
  UNION ALL
  SELECT n.run_id
  FROM ev n
  LEFT JOIN leaders l ON l.run_id = n.run_id AND l.partition = n.partition AND l.term = n.term
    AND l.node = n.cand
  WHERE n.kind IN ('named', 'answer') AND n.cand > 0 AND l.node IS NULL
  UNION ALL
  SELECT n.run_id
  FROM ev n
  JOIN leaders l ON l.run_id = n.run_id AND l.partition = n.partition AND l.place = 1
    AND l.t_us < n.t_us - 2000000
  JOIN settled o ON o.run_id = n.run_id AND o.partition = n.partition AND o.node = n.node
    AND o.healed_us <= n.t_us - 2000000
  WHERE n.kind = 'named' AND n.code = 'final' AND (n.cand <> l.node OR n.term <> l.term)
) x
GROUP BY run_id;
