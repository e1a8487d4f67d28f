-- Elections, logs and commits.

-- sim-I15
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT run_id
  FROM ev WHERE kind = 'leader'
  GROUP BY run_id, partition, term HAVING MIN(node) <> MAX(node)
) x
GROUP BY run_id;

-- sim-I16
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT run_id
  FROM ev WHERE kind = 'vote'
  GROUP BY run_id, partition, node, inc, term HAVING MIN(cand) <> MAX(cand)
  UNION ALL
  SELECT run_id
  FROM ev WHERE kind = 'vote' AND aux = 1
  GROUP BY run_id, partition, node, term HAVING MIN(cand) <> MAX(cand)
) x
GROUP BY run_id;

-- sim-I17
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT run_id, kind, term,
    MAX(CASE WHEN kind IN ('term', 'start') THEN term END) OVER (
      PARTITION BY run_id, partition, node, inc ORDER BY eid
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS written,
    MAX(CASE WHEN kind = 'leader' OR (kind = 'vote' AND aux = 1) THEN term END) OVER (
      PARTITION BY run_id, partition, node ORDER BY eid
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS heard
  FROM ev
  WHERE kind IN ('term', 'start', 'vote', 'leader')
) w
WHERE kind IN ('term', 'start') AND (term < written OR term < heard)
GROUP BY run_id;

-- sim-I18
SELECT run_id, COUNT(*) AS n
FROM ev
WHERE kind = 'truncate' AND code = 'L'
GROUP BY run_id;

-- sim-I19
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT run_id
  FROM ev WHERE kind = 'append'
  GROUP BY run_id, partition, log_index, term HAVING MIN(chain) <> MAX(chain)
) x
GROUP BY run_id;

-- sim-I20
WITH led AS (
  SELECT run_id, partition, node, eid, last_index, chain, place, wanted
  FROM (
    SELECT l.run_id, l.partition, l.node, l.eid, l.log_index - 1 AS last_index, l.chain,
      c.log_index AS place, c.chain AS wanted,
      ROW_NUMBER() OVER (PARTITION BY l.run_id, l.eid ORDER BY c.log_index DESC, c.eid) AS nth
    FROM ev l
    JOIN committed c ON c.run_id = l.run_id AND c.partition = l.partition AND c.term < l.term
      AND c.eid < l.eid
    WHERE l.kind = 'leader'
  ) highest
  WHERE nth = 1
)
SELECT d.run_id, COUNT(*) AS n
FROM led d
LEFT JOIN (
  SELECT h.run_id, h.eid, MAX(a.eid) AS written
  FROM led h
  JOIN ev a ON a.run_id = h.run_id AND a.kind = 'append' AND a.partition = h.partition
    AND a.node = h.node AND a.log_index = h.place AND a.eid < h.eid
  GROUP BY h.run_id, h.eid
) o ON o.run_id = d.run_id AND o.eid = d.eid
LEFT JOIN ev own ON own.run_id = o.run_id AND own.eid = o.written
LEFT JOIN (
  SELECT h.run_id, h.eid
  FROM led h
  JOIN ev s ON s.run_id = h.run_id AND s.kind = 'snapshot' AND s.code = 'installed'
    AND s.partition = h.partition AND s.node = h.node AND s.log_index >= h.place AND s.eid < h.eid
  GROUP BY h.run_id, h.eid
) covered ON covered.run_id = d.run_id AND covered.eid = d.eid
WHERE d.last_index < d.place
  OR (d.last_index = d.place AND d.chain <> d.wanted)
  OR (d.last_index > d.place AND covered.eid IS NULL AND own.chain <> d.wanted)
GROUP BY d.run_id;

-- sim-I21
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT run_id
  FROM ev WHERE kind = 'apply'
  GROUP BY run_id, partition, log_index HAVING MIN(chain) <> MAX(chain)
) x
GROUP BY run_id;

-- sim-I22
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT run_id
  FROM ev WHERE kind = 'truncate' AND log_index <= aux
  UNION ALL
  SELECT run_id
  FROM (
    SELECT run_id, kind, log_index,
      LAG(mark) OVER (PARTITION BY run_id, partition, node ORDER BY eid) AS mark
    FROM marks
  ) m
  WHERE kind IN ('crash', 'start') AND log_index < mark
) x
GROUP BY run_id;

-- sim-I23
WITH commits AS (
  SELECT run_id, partition, eid, term, log_index FROM ev WHERE kind = 'commit' AND aux = 1
)
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT c.run_id, c.term, c.log_index, t.term AS probe,
    MAX(c.log_index) OVER (
      PARTITION BY c.run_id, c.partition, t.term ORDER BY c.eid
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS highest
  FROM commits c
  JOIN (SELECT DISTINCT run_id, partition, term FROM commits) t
    ON t.run_id = c.run_id AND t.partition = c.partition AND t.term >= c.term
) w
WHERE term = probe AND log_index < highest
GROUP BY run_id;

-- sim-I24
WITH asked AS (
  SELECT k.run_id, k.partition, k.eid, k.log_index, k.node AS committer, m.node
  FROM ev k
  JOIN (
    SELECT run_id, partition, node FROM marks
    UNION
    SELECT run_id, partition, node FROM ev WHERE kind = 'commit'
  ) m ON m.run_id = k.run_id AND m.partition = k.partition
  WHERE k.kind = 'commit' AND k.quorum IS NOT NULL
),
reaching AS (
  SELECT run_id, partition, node, eid, wanted, covered, spell,
    MIN(place) OVER (
      PARTITION BY run_id, partition, node, spell ORDER BY eid
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS mark
  FROM (
    SELECT run_id, partition, node, eid, wanted, place,
      SUM(sets) OVER (
        PARTITION BY run_id, partition, node ORDER BY eid
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS spell,
      MAX(covers) OVER (
        PARTITION BY run_id, partition, node ORDER BY eid
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS covered
    FROM (
      SELECT run_id, partition, node, eid, place, CAST(NULL AS BIGINT) AS wanted,
        CASE WHEN kind = 'durable' THEN 1 ELSE 0 END AS sets, CAST(NULL AS BIGINT) AS covers
      FROM marks
      UNION ALL
      SELECT run_id, partition, node, eid, CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), 0, log_index
      FROM ev WHERE kind = 'snapshot' AND code = 'installed'
      UNION ALL
      SELECT run_id, partition, node, eid, CAST(NULL AS BIGINT), log_index, 0,
        CAST(NULL AS BIGINT)
      FROM asked
    ) rows_and_commits
  ) spells
),
written AS (
  SELECT w.run_id, w.node, w.eid, a.chain
  FROM (
    SELECT run_id, node, eid, asks,
      MAX(CASE WHEN asks = 0 THEN eid END) OVER (
        PARTITION BY run_id, partition, node, log_index ORDER BY eid
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS last_eid
    FROM (
      SELECT run_id, partition, node, eid, log_index, 0 AS asks FROM ev WHERE kind = 'append'
      UNION ALL
      SELECT run_id, partition, node, eid, log_index, 1 FROM asked
    ) appends_and_commits
  ) w
  JOIN ev a ON a.run_id = w.run_id AND a.eid = w.last_eid
  WHERE w.asks = 1
),
held AS (
  SELECT q.run_id, q.eid, q.node, q.committer,
    CASE WHEN r.spell > 0 AND r.mark >= r.wanted THEN 1 ELSE 0 END AS durable,
    CASE WHEN COALESCE(r.covered, 0) < r.wanted THEN w.chain END AS chain
  FROM asked q
  JOIN reaching r ON r.run_id = q.run_id AND r.eid = q.eid AND r.node = q.node
  LEFT JOIN written w ON w.run_id = q.run_id AND w.eid = q.eid AND w.node = q.node
)
SELECT c.run_id, COUNT(*) AS n
FROM ev c
LEFT JOIN (
  SELECT h.run_id, h.eid, SUM(h.durable) AS holding
  FROM held h
  JOIN (SELECT run_id, eid, chain FROM held WHERE node = committer) own
    ON own.run_id = h.run_id AND own.eid = h.eid
  WHERE h.chain IS NULL OR own.chain IS NULL OR h.chain = own.chain
  GROUP BY h.run_id, h.eid
) h ON h.run_id = c.run_id AND h.eid = c.eid
WHERE c.kind = 'commit' AND COALESCE(h.holding, 0) < c.quorum
GROUP BY c.run_id;

-- sim-I26
SELECT run_id, COUNT(*) AS n
FROM ev
WHERE kind = 'leader' AND aux > 0
GROUP BY run_id;
