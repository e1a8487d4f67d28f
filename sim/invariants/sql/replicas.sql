-- Producer tables of replicas, whether a run recovered, and what its disks hold afterwards.

-- sim-I25
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT run_id
  FROM (
    SELECT run_id, kind, log_index,
      LAG(log_index) OVER (PARTITION BY run_id, partition, node, inc ORDER BY eid) AS last_index
    FROM ev
    WHERE kind = 'apply' OR (kind = 'snapshot' AND code = 'installed')
  ) w
  WHERE kind = 'apply' AND log_index <> last_index + 1
  UNION ALL
  SELECT run_id
  FROM told WHERE rests = 0
  GROUP BY run_id, partition, log_index HAVING MIN(state_hash) <> MAX(state_hash)
) x
GROUP BY run_id;

-- sim-I27
WITH replayed AS (
  SELECT run_id, partition, log_index, state_hash
  FROM (
    SELECT run_id, partition, log_index, state_hash,
      ROW_NUMBER() OVER (PARTITION BY run_id, partition, log_index ORDER BY eid) AS place
    FROM told WHERE rests = 0
  ) f
  WHERE place = 1
)
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT t.run_id
  FROM told t
  LEFT JOIN replayed r ON r.run_id = t.run_id AND r.partition = t.partition
    AND r.log_index = t.log_index
  WHERE t.rests = 1
  GROUP BY t.run_id, t.partition, t.log_index
  HAVING MIN(t.state_hash) <> MAX(t.state_hash) OR MIN(t.state_hash) <> MIN(r.state_hash)
) x
GROUP BY run_id;

-- sim-I31
WITH judged AS (
  SELECT run_id, MAX(CASE WHEN code = 'heal' THEN eid END) AS healed
  FROM ev WHERE kind = 'phase'
  GROUP BY run_id
  HAVING MAX(CASE WHEN code = 'heal' THEN 1 END) = 1 AND MAX(CASE WHEN code = 'done' THEN 1 END) = 1
),
core AS (
  SELECT DISTINCT run_id, node FROM ev WHERE kind = 'phase' AND code = 'heal'
),
faults AS (
  SELECT g.run_id, g.partition
  FROM (
    SELECT DISTINCT run_id, partition FROM ev WHERE kind IN ('start', 'leader', 'inv')
  ) g
  LEFT JOIN (
    SELECT s.run_id, s.partition
    FROM (
      SELECT run_id, partition, node, kind,
        ROW_NUMBER() OVER (PARTITION BY run_id, partition, node ORDER BY eid DESC) AS place
      FROM ev
      WHERE kind IN ('leader', 'stepdown', 'crash')
    ) s
    JOIN core c ON c.run_id = s.run_id AND c.node = s.node
    WHERE s.place = 1 AND s.kind = 'leader'
  ) led ON led.run_id = g.run_id AND led.partition = g.partition
  WHERE led.run_id IS NULL
  UNION ALL
  SELECT i.run_id, i.partition
  FROM ev i
  LEFT JOIN ev e ON e.run_id = i.run_id AND e.op = i.op AND e.kind IN ('ok', 'fail', 'info')
  WHERE i.kind = 'inv' AND e.op IS NULL
  UNION ALL
  SELECT a.run_id, a.partition
  FROM ev a
  JOIN judged j ON j.run_id = a.run_id
  WHERE a.kind IN ('inv', 'ok') AND a.acks <> 0 AND a.eid > j.healed
  GROUP BY a.run_id, a.partition
  HAVING MAX(CASE WHEN a.kind = 'ok' THEN 1 ELSE 0 END) = 0
  UNION ALL
  SELECT run_id, partition
  FROM (
    SELECT m.run_id, m.partition, m.node, COALESCE(f.off, s.start_off - 1, -1) AS off, f.chain
    FROM (
      SELECT DISTINCT e.run_id, e.partition, e.node
      FROM ev e
      JOIN core c ON c.run_id = e.run_id AND c.node = e.node
      WHERE e.partition >= 0
        AND (e.kind IN ('start', 'append') OR (e.kind = 'snapshot' AND e.off > 0)
          OR (e.kind = 'final' AND e.aux = 1))
    ) m
    LEFT JOIN (
      SELECT run_id, partition, node, off, chain,
        ROW_NUMBER() OVER (PARTITION BY run_id, partition, node ORDER BY off DESC) AS place
      FROM ev
      WHERE kind = 'final' AND aux = 1
    ) f ON f.run_id = m.run_id AND f.partition = m.partition AND f.node = m.node AND f.place = 1
    LEFT JOIN (
      SELECT run_id, partition, node, MAX(off) AS start_off
      FROM ev
      WHERE kind = 'snapshot' AND off > 0
      GROUP BY run_id, partition, node
    ) s ON s.run_id = m.run_id AND s.partition = m.partition AND s.node = m.node
  ) tails
  GROUP BY run_id, partition
  HAVING MIN(off) <> MAX(off) OR MIN(chain) <> MAX(chain)
)
SELECT f.run_id, COUNT(*) AS n
FROM faults f
JOIN judged j ON j.run_id = f.run_id
LEFT JOIN (
  SELECT DISTINCT e.run_id, e.partition
  FROM ev e
  JOIN judged k ON k.run_id = e.run_id
  WHERE e.kind = 'phase' AND e.code = 'excused' AND e.eid > k.healed
) x ON x.run_id = f.run_id AND x.partition = f.partition
WHERE x.run_id IS NULL
GROUP BY f.run_id;

-- sim-I35
SELECT run_id, COUNT(*) AS n
FROM ev
WHERE kind = 'decide' AND node = 0
GROUP BY run_id;

-- sim-I37
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT run_id
  FROM ev
  WHERE kind = 'final' AND aux = 1
  GROUP BY run_id, partition, off
  HAVING MIN(COALESCE(value, -2)) <> MAX(COALESCE(value, -2))
    OR MIN(COALESCE(pid, -2)) <> MAX(COALESCE(pid, -2))
    OR MIN(COALESCE(epoch, -2)) <> MAX(COALESCE(epoch, -2))
    OR MIN(COALESCE(seq, -2)) <> MAX(COALESCE(seq, -2))
  UNION ALL
  SELECT run_id
  FROM ev
  WHERE kind = 'final' AND aux = 1
  GROUP BY run_id, partition, node HAVING MAX(off) - MIN(off) + 1 <> COUNT(DISTINCT off)
) x
GROUP BY run_id;

-- sim-I38
SELECT run_id, COUNT(*) AS n
FROM ev
WHERE kind = 'check' AND node = 0
GROUP BY run_id;

-- sim-I49
SELECT run_id, COUNT(*) AS n
FROM ev
WHERE kind = 'step' AND node = 0
GROUP BY run_id;
