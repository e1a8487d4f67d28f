-- What readers are answered other than records.

-- view leaderships: where a node leads, from `eid` to `until`. From `serves` on, it knew that its
-- first entry was committed, and answered readers
SELECT l.run_id, l.partition, l.node, l.term, l.eid, l.until, MIN(c.eid) AS serves
FROM (
  SELECT run_id, partition, node, eid, kind, term,
    LEAD(eid) OVER (PARTITION BY run_id, partition, node ORDER BY eid) AS until
  FROM ev WHERE kind IN ('leader', 'stepdown', 'crash', 'start')
) l
JOIN (
  SELECT run_id, partition, node, term, MAX(eid) AS eid
  FROM ev WHERE kind = 'leader'
  GROUP BY run_id, partition, node, term
) g ON g.run_id = l.run_id AND g.partition = l.partition AND g.node = l.node AND g.term = l.term
JOIN ev b ON b.run_id = g.run_id AND b.eid = g.eid
JOIN ev c ON c.run_id = l.run_id AND c.partition = l.partition AND c.node = l.node
  AND c.kind = 'commit' AND c.aux = 1 AND c.term = l.term AND c.log_index >= b.log_index
  AND c.eid > b.eid
WHERE l.kind = 'leader'
GROUP BY l.run_id, l.partition, l.node, l.term, l.eid, l.until;

-- view starts: offsets at which a node said that its log begins
SELECT run_id, partition, node, eid, CASE WHEN kind = 'apply' THEN aux ELSE off END AS off
FROM ev
WHERE (kind = 'snapshot' AND off IS NOT NULL) OR (kind = 'apply' AND aux IS NOT NULL);

-- view epochs: where the leader epochs of the committed log begin; until: where the next one begins
SELECT run_id, partition, term, start_off, LEAD(start_off) OVER (
  PARTITION BY run_id, partition ORDER BY term
) AS until
FROM (
  SELECT a.run_id, a.partition, a.term, MIN(COALESCE(a.off, a.hw)) AS start_off
  FROM ev a
  JOIN (
    SELECT run_id, partition, term, MIN(log_index) AS log_index
    FROM ev WHERE kind = 'apply' AND hw IS NOT NULL
    GROUP BY run_id, partition, term
  ) f ON f.run_id = a.run_id AND f.partition = a.partition AND f.term = a.term
    AND f.log_index = a.log_index
  WHERE a.kind = 'apply' AND a.hw IS NOT NULL
  GROUP BY a.run_id, a.partition, a.term
) started;

-- view answered: what leaders answered readers. low, high: what they knew to be committed at the
-- question and at the answer. start_off, last_start: where their log began then. may_hold: 1 if too
-- few replicas may be in sync
SELECT a.run_id, a.partition, a.node, a.client, a.eid, a.aux AS since, a.kind, a.code, a.off,
  a.value, a.term, a.hw,
  COALESCE(MAX(CASE WHEN w.kind = 'commit' AND w.eid < a.aux THEN w.hw END), 0) AS low,
  COALESCE(MAX(CASE WHEN w.kind = 'commit' THEN w.hw END), 0) AS high,
  COALESCE(MAX(CASE WHEN w.eid >= a.aux THEN NULL WHEN w.kind = 'snapshot' THEN w.off
    WHEN w.kind = 'apply' THEN w.aux END), 0) AS start_off,
  COALESCE(MAX(CASE WHEN w.kind = 'snapshot' THEN w.off WHEN w.kind = 'apply' THEN w.aux END), 0)
    AS last_start,
  CASE WHEN MAX(p.quorum) > 1 THEN 1 ELSE 0 END AS may_hold
FROM ev a
LEFT JOIN ev w ON w.run_id = a.run_id AND w.partition = a.partition AND w.node = a.node
  AND w.kind IN ('commit', 'snapshot', 'apply') AND w.eid < a.eid
LEFT JOIN (
  SELECT run_id, MAX(quorum) AS quorum FROM ev WHERE kind = 'phase' GROUP BY run_id
) p ON p.run_id = a.run_id
WHERE a.kind IN ('learn', 'fetch') AND a.aux IS NOT NULL AND COALESCE(a.code, '') <> 'leader'
GROUP BY a.run_id, a.partition, a.node, a.client, a.eid, a.aux, a.kind, a.code, a.off, a.value,
  a.term, a.hw;

-- view answered_by: the leaderships that may have given such an answer
SELECT t.run_id, t.eid, t.since, t.partition, t.node, l.term, l.eid AS led
FROM answered t
JOIN leaderships l ON l.run_id = t.run_id AND l.partition = t.partition AND l.node = t.node
  AND l.eid < t.eid
WHERE COALESCE(l.until, t.eid) >= t.since AND l.serves < t.eid;

-- sim-I39
WITH errors AS (
  SELECT run_id, partition, node, eid, aux AS since, off, term, value, code
  FROM ev
  WHERE kind = 'error' AND aux <= eid AND node IS NOT NULL
    AND code NOT IN ('DISCONNECTED', 'TIMED_OUT')
),
made AS (
  SELECT c.run_id, MAX(c.log_index) AS log_index
  FROM ev c
  JOIN (
    SELECT run_id, MIN(eid) AS eid FROM ev WHERE kind = 'phase' AND code = 'load' GROUP BY run_id
  ) l ON l.run_id = c.run_id AND c.eid < l.eid
  WHERE c.kind = 'commit' AND c.partition = -1
  GROUP BY c.run_id
),
known AS (
  SELECT t.run_id, t.eid,
    COALESCE(MAX(CASE WHEN w.kind = 'snapshot' THEN w.off WHEN w.kind = 'apply' THEN w.aux END), 0)
      AS start_off,
    COALESCE(MAX(CASE WHEN w.kind = 'commit' AND w.eid < t.since THEN w.hw END), 0) AS committed,
    COALESCE(MAX(
      CASE WHEN w.kind = 'commit' AND w.node = t.node AND w.eid < t.since THEN w.hw END
    ), 0) AS own,
    MAX(CASE WHEN w.node = t.node AND (
      w.kind IN ('truncate', 'crash', 'start') OR (w.kind = 'snapshot' AND w.code = 'installed')
    ) THEN w.eid END) AS cut,
    MAX(CASE WHEN w.node = t.node AND w.kind IN ('term', 'start', 'leader') THEN w.term END)
      AS newest,
    MAX(CASE WHEN w.node = t.node AND w.kind IN ('term', 'start') AND w.eid < t.since THEN w.eid
    END) AS latest
  FROM errors t
  LEFT JOIN ev w ON w.run_id = t.run_id AND w.partition = t.partition AND w.eid < t.eid
    AND w.kind IN ('snapshot', 'apply', 'commit', 'truncate', 'crash', 'start', 'term', 'leader')
  GROUP BY t.run_id, t.eid
),
learnt AS (
  SELECT t.run_id, t.eid,
    MAX(CASE WHEN w.kind = 'apply' AND w.eid < t.since AND w.log_index >= m.log_index THEN w.eid
    END) AS applied,
    MAX(CASE WHEN w.kind <> 'apply' AND w.eid < t.eid THEN w.eid ELSE -1 END) AS ended
  FROM errors t
  JOIN made m ON m.run_id = t.run_id
  JOIN ev w ON w.run_id = t.run_id AND w.partition = -1 AND w.node = t.node
    AND w.kind IN ('apply', 'crash', 'start')
  WHERE t.code = 'UNKNOWN_TOPIC_OR_PARTITION'
  GROUP BY t.run_id, t.eid
),
untrue AS (
  SELECT t.run_id, t.eid
  FROM errors t
  JOIN known k ON k.run_id = t.run_id AND k.eid = t.eid
  LEFT JOIN ev d ON d.run_id = t.run_id AND d.partition = t.partition AND d.node = t.node
    AND d.kind = 'durable' AND d.off >= t.off AND d.eid < t.since AND d.eid > COALESCE(k.cut, -1)
  WHERE t.code = 'OFFSET_OUT_OF_RANGE' AND (t.off IS NULL
    OR (t.off >= k.start_off AND (t.off <= k.committed OR d.eid IS NOT NULL)))
  UNION ALL
  SELECT t.run_id, t.eid
  FROM errors t
  JOIN known k ON k.run_id = t.run_id AND k.eid = t.eid
  JOIN leaderships s ON s.run_id = t.run_id AND s.partition = t.partition AND s.node = t.node
    AND s.eid < t.since AND s.serves < t.since AND COALESCE(s.until, t.eid) >= t.eid
    AND COALESCE(s.until, t.since) >= t.since
  WHERE t.code IN ('NOT_LEADER_OR_FOLLOWER', 'LEADER_NOT_AVAILABLE') AND t.value IS NULL
    AND (t.off IS NULL OR t.off <= k.own)
  UNION ALL
  SELECT t.run_id, t.eid
  FROM errors t
  JOIN known k ON k.run_id = t.run_id AND k.eid = t.eid
  WHERE t.code = 'FENCED_LEADER_EPOCH' AND (t.term IS NULL OR COALESCE(k.newest, -1) <= t.term)
  UNION ALL
  SELECT t.run_id, t.eid
  FROM errors t
  JOIN known k ON k.run_id = t.run_id AND k.eid = t.eid
  LEFT JOIN ev w ON w.run_id = k.run_id AND w.eid = k.latest
  WHERE t.code = 'UNKNOWN_LEADER_EPOCH' AND (t.term IS NULL OR w.term >= t.term)
  UNION ALL
  SELECT t.run_id, t.eid
  FROM errors t
  JOIN learnt l ON l.run_id = t.run_id AND l.eid = t.eid
  WHERE l.applied > l.ended
  UNION ALL
  SELECT run_id, eid
  FROM errors
  WHERE code NOT IN (
    'OFFSET_OUT_OF_RANGE', 'NOT_LEADER_OR_FOLLOWER', 'LEADER_NOT_AVAILABLE', 'FENCED_LEADER_EPOCH',
    'UNKNOWN_LEADER_EPOCH', 'UNKNOWN_TOPIC_OR_PARTITION', 'KAFKA_STORAGE_ERROR'
  )
  UNION ALL
  SELECT a.run_id, a.eid
  FROM ev a
  LEFT JOIN ev l ON l.run_id = a.run_id AND l.partition = a.partition AND l.node = a.cand
    AND l.term = a.term AND l.kind = 'leader' AND l.eid < a.eid
  WHERE a.kind = 'learn' AND a.code = 'leader' AND l.eid IS NULL
)
SELECT run_id, COUNT(*) AS n FROM untrue GROUP BY run_id;

-- sim-I40
WITH led AS (
  SELECT t.run_id, t.eid, b.term AS leader,
    MAX(CASE WHEN e.term = b.term THEN 1 ELSE 0 END) AS known,
    MAX(CASE WHEN e.start_off <= t.off AND (e.start_off <> e.until OR e.term = b.term) THEN e.term
    END)
      AS epoch
  FROM answered t
  JOIN answered_by b ON b.run_id = t.run_id AND b.eid = t.eid
  LEFT JOIN epochs e ON e.run_id = t.run_id AND e.partition = t.partition AND e.term <= b.term
  GROUP BY t.run_id, t.eid, b.term
),
leaders AS (
  SELECT t.run_id, t.eid,
    MAX(CASE WHEN l.leader = t.term THEN 1 ELSE 0 END) AS in_term,
    MAX(CASE WHEN COALESCE(l.epoch, l.leader) = t.term THEN 1 ELSE 0 END) AS at_epoch,
    MIN(l.known) AS known
  FROM answered t
  JOIN led l ON l.run_id = t.run_id AND l.eid = t.eid
  GROUP BY t.run_id, t.eid
),
wrong AS (
  SELECT t.run_id, t.eid
  FROM answered t
  LEFT JOIN leaders l ON l.run_id = t.run_id AND l.eid = t.eid
  WHERE t.code IN ('earliest', 'latest', 'time') AND l.eid IS NULL
  UNION ALL
  SELECT t.run_id, t.eid
  FROM answered t
  JOIN leaders l ON l.run_id = t.run_id AND l.eid = t.eid
  LEFT JOIN starts b ON b.run_id = t.run_id AND b.partition = t.partition AND b.node = t.node
    AND b.off = t.off AND b.eid >= t.since AND b.eid < t.eid
  WHERE t.code = 'earliest'
    AND ((t.off <> t.start_off AND b.eid IS NULL) OR (l.known = 1 AND l.at_epoch = 0))
  UNION ALL
  SELECT t.run_id, t.eid
  FROM answered t
  JOIN leaders l ON l.run_id = t.run_id AND l.eid = t.eid
  LEFT JOIN ev w ON w.run_id = t.run_id AND w.partition = t.partition AND w.kind = 'apply'
    AND w.hw = t.off
  WHERE t.code = 'latest' AND (l.in_term = 0 OR t.off > t.high OR (w.eid IS NULL AND t.off <> 0)
    OR (t.off < t.low AND t.may_hold = 0))
  UNION ALL
  SELECT t.run_id, t.eid
  FROM answered t
  LEFT JOIN canon r ON r.run_id = t.run_id AND r.partition = t.partition AND r.off >= t.last_start
    AND r.off < CASE WHEN t.off >= 0 THEN t.off WHEN t.may_hold = 0 THEN t.low ELSE 0 END
  LEFT JOIN ev i ON i.run_id = r.run_id AND i.kind = 'inv' AND i.value = r.value
  WHERE t.code = 'time' AND (t.off >= t.high OR i.aux >= t.value)
  UNION ALL
  SELECT t.run_id, t.eid
  FROM answered t
  JOIN canon r ON r.run_id = t.run_id AND r.partition = t.partition AND r.off = t.off
  JOIN ev f ON f.run_id = r.run_id AND f.eid = r.eid
  LEFT JOIN ev i ON i.run_id = r.run_id AND i.kind = 'inv' AND i.value = r.value
  WHERE t.code = 'time' AND t.off >= 0
    AND (COALESCE(i.aux, -1) <> t.hw OR f.term <> t.term OR COALESCE(i.aux, -1) < t.value)
)
SELECT run_id, COUNT(*) AS n FROM wrong GROUP BY run_id;

-- sim-I41
WITH wrong AS (
  SELECT t.run_id, t.eid
  FROM answered t
  LEFT JOIN answered_by b ON b.run_id = t.run_id AND b.eid = t.eid AND b.term = t.term
  LEFT JOIN ev w ON w.run_id = t.run_id AND w.partition = t.partition AND w.kind = 'apply'
    AND w.hw = t.hw
  WHERE t.kind = 'fetch' AND (b.eid IS NULL OR t.hw > t.high OR (w.eid IS NULL AND t.hw <> 0)
    OR (t.hw < t.low AND t.may_hold = 0))
  UNION ALL
  SELECT p.run_id, p.eid
  FROM (
    SELECT run_id, eid, kind, off, MAX(CASE WHEN kind = 'fetch' THEN eid END) OVER (
      PARTITION BY run_id, client, partition ORDER BY eid
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS fetched
    FROM ev WHERE kind IN ('fetch', 'poll')
  ) p
  JOIN ev f ON f.run_id = p.run_id AND f.eid = p.fetched
  WHERE p.kind = 'poll' AND p.off >= f.hw
)
SELECT run_id, COUNT(*) AS n FROM wrong GROUP BY run_id;

-- sim-I42
WITH asked AS (
  SELECT run_id, partition, node, eid, since, value AS asked, term AS found, off, start_off
  FROM answered
  WHERE code IN ('epoch', 'diverging')
),
may_begin AS (
  SELECT run_id, eid, start_off AS off FROM asked
  UNION
  SELECT a.run_id, a.eid, b.off
  FROM asked a
  JOIN starts b ON b.run_id = a.run_id AND b.partition = a.partition AND b.node = a.node
    AND b.eid >= a.since AND b.eid < a.eid
),
log_ends AS (
  SELECT b.run_id, b.eid, b.term AS leader,
    COALESCE(MAX(CASE WHEN w.eid < b.since THEN w.hw END), 0) AS low,
    COALESCE(MAX(w.hw), 0) AS high
  FROM answered_by b
  LEFT JOIN ev w ON w.run_id = b.run_id AND w.partition = b.partition AND w.node = b.node
    AND w.term = b.term AND w.kind = 'append' AND w.aux = 1 AND w.eid < b.eid
  GROUP BY b.run_id, b.eid, b.term
),
cut AS (
  SELECT a.run_id, a.eid, a.asked, a.found, a.off, n.leader, n.low, n.high, m.off AS starts,
    e.term, e.start_off,
    MAX(CASE WHEN e.start_off <= m.off THEN e.term END) OVER (
      PARTITION BY a.run_id, a.eid, n.leader, m.off
    ) AS gone
  FROM asked a
  JOIN log_ends n ON n.run_id = a.run_id AND n.eid = a.eid
  JOIN may_begin m ON m.run_id = a.run_id AND m.eid = a.eid
  JOIN epochs e ON e.run_id = a.run_id AND e.partition = a.partition AND e.term <= n.leader
  WHERE e.start_off <> COALESCE(e.until, -1) OR e.term = n.leader
),
ends AS (
  SELECT run_id, eid, asked, found, off, leader, low, high, starts, MAX(term) AS newest,
    MAX(CASE WHEN term <= asked THEN term END) AS lower,
    MIN(CASE WHEN term <= asked THEN NULL WHEN term = gone THEN starts ELSE start_off END) AS upper
  FROM cut
  WHERE gone IS NULL OR term >= gone
  GROUP BY run_id, eid, asked, found, off, leader, low, high, starts
),
right_ones AS (
  SELECT run_id, eid,
    MAX(CASE
      WHEN newest <> leader THEN 1
      WHEN asked < 0 OR asked > newest THEN
        CASE WHEN found = -1 AND off = -1 THEN 1 ELSE 0 END
      WHEN upper IS NOT NULL THEN
        CASE WHEN found = COALESCE(lower, asked) AND off = upper THEN 1 ELSE 0 END
      WHEN found = newest AND off >= low AND off <= high THEN 1
      ELSE 0
    END) AS right_one
  FROM ends
  GROUP BY run_id, eid
)
SELECT a.run_id, COUNT(*) AS n
FROM asked a
LEFT JOIN right_ones r ON r.run_id = a.run_id AND r.eid = a.eid
LEFT JOIN (SELECT DISTINCT run_id, eid FROM answered_by) b ON b.run_id = a.run_id AND b.eid = a.eid
WHERE b.eid IS NULL OR r.right_one = 0
GROUP BY a.run_id;
