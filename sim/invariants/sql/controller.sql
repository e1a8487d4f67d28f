-- What the controller decides.

-- sim-I48
WITH told AS (
  SELECT run_id, eid, op, code, aux, asked, settled
  FROM (
    SELECT run_id, eid, op, code, aux,
      LAG(eid) OVER (PARTITION BY run_id ORDER BY eid) AS asked,
      MAX(CASE WHEN code NOT IN (
        'create', 'delete', 'TOPIC_ALREADY_EXISTS', 'UNKNOWN_TOPIC_OR_PARTITION'
      ) THEN eid END) OVER (
        PARTITION BY run_id, op ORDER BY eid ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS settled
    FROM ev
    WHERE kind = 'topic' AND client IS NOT NULL
  ) t
  WHERE code NOT IN ('create', 'delete')
), answers AS (
  SELECT t.run_id, t.eid, t.code, t.asked, CASE
      WHEN s.eid IS NULL THEN 'new' WHEN s.code IN ('created', 'deleted') THEN s.code
      ELSE 'unknown' END AS state
  FROM told t
  LEFT JOIN ev s ON s.run_id = t.run_id AND s.eid = t.settled
), led AS (
  SELECT l.run_id, l.term, l.eid AS began, COALESCE(MIN(e.eid), 4611686018427387904) AS ended
  FROM ev l
  LEFT JOIN ev e ON e.run_id = l.run_id AND e.partition = -1 AND e.node = l.node
    AND e.kind IN ('stepdown', 'crash') AND e.eid > l.eid
  WHERE l.kind = 'leader' AND l.partition = -1
  GROUP BY l.run_id, l.term, l.eid
), two AS (
  SELECT o.run_id, CASE WHEN o.began > n.began THEN o.began ELSE n.began END AS began, o.ended
  FROM led o
  JOIN led n ON n.run_id = o.run_id AND n.term > o.term
  WHERE o.ended > n.began
), excused AS (
  SELECT DISTINCT a.run_id, a.eid
  FROM answers a
  JOIN two w ON w.run_id = a.run_id AND w.began < a.eid
  WHERE w.ended > a.asked
), lasts AS (
  SELECT run_id, op, MAX(aux) AS partitions,
    MAX(CASE WHEN code NOT IN ('TOPIC_ALREADY_EXISTS', 'UNKNOWN_TOPIC_OR_PARTITION')
      AND (code NOT IN ('create', 'delete') OR eid = last_eid) THEN eid END) AS settled
  FROM (
    SELECT run_id, op, aux, code, eid, MAX(eid) OVER (PARTITION BY run_id) AS last_eid
    FROM ev
    WHERE kind = 'topic' AND client IS NOT NULL
  ) c
  GROUP BY run_id, op
), states AS (
  SELECT l.run_id, l.op, l.partitions, CASE
      WHEN s.eid IS NULL THEN 'new' WHEN s.code IN ('created', 'deleted') THEN s.code
      ELSE 'unknown' END AS state
  FROM lasts l
  LEFT JOIN ev s ON s.run_id = l.run_id AND s.eid = l.settled
), known AS (
  SELECT run_id, op, node, aux FROM ev
  WHERE kind = 'topic' AND client IS NULL AND code IN ('known', 'unserved')
)
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT run_id
  FROM answers
  WHERE (code = 'created' AND state = 'created')
    OR (code = 'deleted' AND state IN ('new', 'deleted'))
    OR (code = UPPER(code) AND code NOT IN (
      'TOPIC_ALREADY_EXISTS', 'UNKNOWN_TOPIC_OR_PARTITION', 'REQUEST_TIMED_OUT'
    ))
  UNION ALL
  SELECT a.run_id
  FROM answers a
  LEFT JOIN excused e ON e.run_id = a.run_id AND e.eid = a.eid
  WHERE e.eid IS NULL AND (
    (a.code = 'TOPIC_ALREADY_EXISTS' AND a.state IN ('new', 'deleted'))
    OR (a.code = 'UNKNOWN_TOPIC_OR_PARTITION' AND a.state = 'created')
  )
  UNION ALL
  SELECT run_id
  FROM ev
  WHERE kind = 'topic' AND client IS NULL AND code IN ('unled', 'unserved', 'leftover')
  UNION ALL
  SELECT k.run_id
  FROM known k
  LEFT JOIN states s ON s.run_id = k.run_id AND s.op = k.op
  WHERE s.op IS NULL OR s.state IN ('new', 'deleted') OR s.partitions <> k.aux
  UNION ALL
  SELECT n.run_id
  FROM ev n
  JOIN (
    SELECT run_id, op FROM known
    UNION
    SELECT run_id, op FROM states WHERE state = 'created'
  ) t ON t.run_id = n.run_id
  LEFT JOIN known k ON k.run_id = n.run_id AND k.node = n.node AND k.op = t.op
  WHERE n.kind = 'topic' AND n.client IS NULL AND n.code = 'listed' AND k.op IS NULL
) x
GROUP BY run_id;
