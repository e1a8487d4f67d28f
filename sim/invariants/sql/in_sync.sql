-- Replicas that must be in sync: what was refused, accepted or shown because of them.

-- sim-I43: a model knows bounds of how many are in sync: at least `aux`, at most `acks`
WITH answers AS (
  SELECT run_id, client, partition, pid, epoch, seq, seq_last, off, code
  FROM ev
  WHERE kind = 'answer' AND pid >= 0 AND seq >= 0
    AND code IN ('NOT_ENOUGH_REPLICAS', 'NOT_ENOUGH_REPLICAS_AFTER_APPEND')
),
refused AS (
  SELECT run_id, client, partition, pid, epoch, seq, seq_last, COUNT(*) AS times
  FROM answers WHERE code = 'NOT_ENOUGH_REPLICAS'
  GROUP BY run_id, client, partition, pid, epoch, seq, seq_last
),
sent AS (
  SELECT run_id, client, partition, pid, epoch, seq, seq_last, COUNT(*) AS times
  FROM ev WHERE kind = 'send'
  GROUP BY run_id, client, partition, pid, epoch, seq, seq_last
),
never_accepted AS (
  SELECT s.run_id, s.partition, s.pid, s.epoch, s.seq, s.seq_last
  FROM sent s
  LEFT JOIN refused r ON r.run_id = s.run_id AND r.client = s.client AND r.partition = s.partition
    AND r.pid = s.pid AND r.epoch = s.epoch AND r.seq = s.seq AND r.seq_last = s.seq_last
  GROUP BY s.run_id, s.partition, s.pid, s.epoch, s.seq, s.seq_last
  HAVING SUM(s.times) <= SUM(COALESCE(r.times, 0))
)
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT run_id
  FROM ev
  WHERE kind = 'insync' AND (
    (code = 'FETCH' AND hw > off)
    OR (code IN ('NOT_ENOUGH_REPLICAS', 'NOT_ENOUGH_REPLICAS_AFTER_APPEND', 'HELD')
      AND aux >= quorum)
    OR (code = 'NONE' AND acks < quorum)
    OR value > acks
  )
  UNION ALL
  SELECT n.run_id
  FROM never_accepted n
  JOIN ev a ON a.run_id = n.run_id AND a.kind = 'append' AND a.aux = 1
    AND a.partition = n.partition AND a.pid = n.pid AND a.epoch = n.epoch AND a.seq = n.seq
    AND a.seq_last = n.seq_last
  UNION ALL
  SELECT l.run_id
  FROM answers l
  LEFT JOIN ev a ON a.run_id = l.run_id AND a.kind = 'apply' AND a.partition = l.partition
    AND a.off = l.off AND a.pid = l.pid AND a.epoch = l.epoch AND a.seq = l.seq
    AND a.seq_last = l.seq_last
  WHERE l.code = 'NOT_ENOUGH_REPLICAS_AFTER_APPEND' AND a.eid IS NULL
  UNION ALL
  SELECT run_id
  FROM (
    SELECT run_id, kind, hw,
      MAX(CASE WHEN kind = 'commit' THEN hw END) OVER (
        PARTITION BY run_id, partition ORDER BY eid
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS committed
    FROM ev
    WHERE kind IN ('fetch', 'commit')
  ) h
  WHERE kind = 'fetch' AND hw > COALESCE(committed, 0)
) x
GROUP BY run_id;
