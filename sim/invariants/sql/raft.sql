-- Elections, logs and commits.

-- sim-I15
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT run_id
  FROM ev WHERE kind = 'leader'
  GROUP BY run_id, partition, term HAVING MIN(node) <> MAX(node)
) x
GROUP BY run_id;

-- sim-I16: a leader has voted for itself
WITH votes AS (
  SELECT run_id, partition, node, inc, term, cand, aux FROM ev WHERE kind = 'vote'
  UNION ALL
  SELECT run_id, partition, node, inc, term, node, 1 FROM ev WHERE kind = 'leader'
)
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT run_id
  FROM votes
  GROUP BY run_id, partition, node, inc, term HAVING MIN(cand) <> MAX(cand)
  UNION ALL
  SELECT run_id
  FROM votes WHERE aux = 1
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
  SELECT h.run_id, h.eid, MAX(s.eid) AS installed
  FROM led h
  JOIN ev s ON s.run_id = h.run_id AND s.kind = 'snapshot' AND s.code = 'installed'
    AND s.partition = h.partition AND s.node = h.node AND s.log_index >= h.place AND s.eid < h.eid
  GROUP BY h.run_id, h.eid
) covered ON covered.run_id = d.run_id AND covered.eid = d.eid AND covered.installed > o.written
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
    SELECT run_id, code, log_index,
      MAX(CASE WHEN kind = 'commit' THEN log_index END) OVER (
        PARTITION BY run_id, partition, node, inc ORDER BY eid
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS known
    FROM ev
    WHERE kind = 'commit' OR (kind = 'snapshot' AND code = 'installed')
  ) s
  WHERE code = 'installed' AND log_index < known
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

-- sim-I24: chains are compared only at indexes at which nodes wrote two different ones
WITH asked AS (
  SELECT k.run_id, k.partition, k.eid, k.log_index, k.quorum, k.node AS committer, m.node
  FROM ev k
  JOIN (
    SELECT run_id, partition, node FROM marks
    UNION
    SELECT run_id, partition, node FROM ev WHERE kind = 'commit'
  ) m ON m.run_id = k.run_id AND m.partition = k.partition
  WHERE k.kind = 'commit' AND k.quorum IS NOT NULL
),
reaching AS (
  SELECT run_id, partition, node, eid, wanted, quorum, committer, spell,
    MIN(place) OVER (
      PARTITION BY run_id, partition, node, spell ORDER BY eid
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS mark
  FROM (
    SELECT run_id, partition, node, eid, wanted, quorum, committer, place,
      SUM(sets) OVER (
        PARTITION BY run_id, partition, node ORDER BY eid
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS spell
    FROM (
      SELECT run_id, partition, node, eid, place, CAST(NULL AS BIGINT) AS wanted,
        CAST(NULL AS BIGINT) AS quorum, CAST(NULL AS BIGINT) AS committer,
        CASE WHEN kind = 'durable' THEN 1 ELSE 0 END AS sets
      FROM marks
      UNION ALL
      SELECT run_id, partition, node, eid, CAST(NULL AS BIGINT), log_index, quorum, committer, 0
      FROM asked
    ) rows_and_commits
  ) spells
),
split AS (
  SELECT run_id, partition, log_index
  FROM ev WHERE kind = 'append'
  GROUP BY run_id, partition, log_index HAVING MIN(chain) <> MAX(chain)
),
written AS (
  SELECT w.run_id, w.eid, w.node, w.committer, a.chain
  FROM (
    SELECT run_id, partition, node, eid, log_index, committer,
      MAX(CASE WHEN committer IS NULL THEN eid END) OVER (
        PARTITION BY run_id, partition, node, log_index ORDER BY eid
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS last_eid
    FROM (
      SELECT e.run_id, e.partition, e.node, e.eid, e.log_index, CAST(NULL AS BIGINT) AS committer
      FROM ev e
      JOIN split s ON s.run_id = e.run_id AND s.partition = e.partition
        AND s.log_index = e.log_index
      WHERE e.kind = 'append'
      UNION ALL
      SELECT q.run_id, q.partition, q.node, q.eid, q.log_index, q.committer
      FROM asked q
      JOIN split s ON s.run_id = q.run_id AND s.partition = q.partition
        AND s.log_index = q.log_index
    ) appends_and_commits
  ) w
  JOIN ev a ON a.run_id = w.run_id AND a.eid = w.last_eid
  LEFT JOIN ev covers ON covers.run_id = w.run_id AND covers.kind = 'snapshot'
    AND covers.code = 'installed' AND covers.partition = w.partition AND covers.node = w.node
    AND covers.log_index >= w.log_index AND covers.eid BETWEEN w.last_eid AND w.eid
  WHERE w.committer IS NOT NULL AND covers.eid IS NULL
),
differing AS (
  SELECT w.run_id, w.eid, w.node
  FROM written w
  JOIN written own ON own.run_id = w.run_id AND own.eid = w.eid AND own.node = own.committer
  WHERE w.chain <> own.chain
)
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT r.run_id, r.eid
  FROM reaching r
  LEFT JOIN differing d ON d.run_id = r.run_id AND d.eid = r.eid AND d.node = r.node
  WHERE r.wanted IS NOT NULL
  GROUP BY r.run_id, r.eid, r.quorum
  HAVING SUM(CASE WHEN r.spell > 0 AND r.mark >= r.wanted AND d.eid IS NULL THEN 1 ELSE 0 END)
    < r.quorum
) lacking
GROUP BY run_id;

-- sim-I26
SELECT run_id, COUNT(*) AS n
FROM ev
WHERE kind = 'leader' AND aux > 0
GROUP BY run_id;

-- sim-I50
SELECT f.run_id, COUNT(*) AS n
FROM ev f
JOIN (
  SELECT run_id, MIN(CASE WHEN code = 'rest' THEN eid END) AS first_eid,
    MAX(CASE WHEN code = 'rested' THEN eid END) AS last_eid
  FROM ev WHERE kind = 'phase' GROUP BY run_id
) r ON r.run_id = f.run_id
WHERE f.kind = 'stepdown' AND f.eid > r.first_eid AND (r.last_eid IS NULL OR f.eid < r.last_eid)
GROUP BY f.run_id;

-- sim-I52
SELECT run_id, COUNT(*) AS n
FROM ev
WHERE kind = 'forbidden'
GROUP BY run_id;
