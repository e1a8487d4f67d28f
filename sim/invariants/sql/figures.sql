-- Figures that are only measured.

-- sim-I32 acknowledged, of a thousand
SELECT i.run_id, CAST(FLOOR(COUNT(DISTINCT o.op) * 1000 / COUNT(DISTINCT i.op)) AS BIGINT) AS n
FROM ev i
LEFT JOIN ev o ON o.run_id = i.run_id AND o.kind = 'ok' AND o.op = i.op
WHERE i.kind = 'inv'
GROUP BY i.run_id;

-- sim-I43 not judged
SELECT run_id, COUNT(*) AS n
FROM ev
WHERE kind = 'insync' AND code <> 'FETCH' AND aux < quorum AND quorum <= acks
GROUP BY run_id;

-- sim-I33 longest gap, us
SELECT run_id, MAX(t_us - last_us) AS n
FROM (
  SELECT run_id, t_us, elections,
    LAG(t_us) OVER (PARTITION BY run_id, partition ORDER BY eid) AS last_us,
    LAG(elections) OVER (PARTITION BY run_id, partition ORDER BY eid) AS last_elections
  FROM (
    SELECT run_id, partition, eid, kind, t_us,
      SUM(CASE WHEN kind = 'leader' THEN 1 ELSE 0 END) OVER (
        PARTITION BY run_id, partition ORDER BY eid
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS elections
    FROM ev
    WHERE kind = 'leader' OR (kind = 'ok' AND acks <> 0)
  ) w
  WHERE kind = 'ok'
) gaps
WHERE elections > last_elections
GROUP BY run_id;

-- losses by acks
SELECT o.run_id, o.acks, COUNT(*) AS acknowledged,
  SUM(CASE
    WHEN c.value IS NULL AND x.run_id IS NULL AND e.eid IS NULL THEN 1 ELSE 0
  END) AS lost
FROM ev o
JOIN ev i ON i.run_id = o.run_id AND i.kind = 'inv' AND i.op = o.op
LEFT JOIN (SELECT DISTINCT run_id, partition, value FROM canon) c
  ON c.run_id = o.run_id AND c.partition = o.partition AND c.value = i.value
LEFT JOIN erased e ON e.run_id = o.run_id AND e.eid = o.eid
LEFT JOIN cut_short x ON x.run_id = o.run_id
WHERE o.kind = 'ok'
GROUP BY o.run_id, o.acks;
