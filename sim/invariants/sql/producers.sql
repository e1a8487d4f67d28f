-- What idempotence promises about the canonical log.

-- sim-I02
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT run_id
  FROM promised
  GROUP BY run_id, partition, pid, epoch, spell, seq HAVING COUNT(*) > 1
  UNION ALL
  SELECT run_id
  FROM promised
  GROUP BY run_id, partition, pid, epoch, spell, value HAVING COUNT(*) > 1
) d
GROUP BY run_id;

-- sim-I03
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT p.run_id, p.op, p.spell, d.value AS again,
    MAX(p.op) OVER (
      PARTITION BY p.run_id, p.partition, p.client, p.pid, p.spell ORDER BY p.off
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS newest,
    FIRST_VALUE(p.op) OVER (
      PARTITION BY p.run_id, p.partition, p.client, p.pid, p.spell ORDER BY p.off
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS begun
  FROM promised p
  LEFT JOIN deleted d ON d.run_id = p.run_id AND d.partition = p.partition AND d.value = p.value
  WHERE p.place = 1 AND p.op IS NOT NULL
) w
WHERE again IS NULL AND op < newest AND (op > begun OR spell = 0)
GROUP BY run_id;

-- sim-I04
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT run_id, place,
    MAX(place) OVER (
      PARTITION BY run_id, partition, pid, epoch, spell ORDER BY off
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS furthest
  FROM (
    SELECT run_id, partition, pid, epoch, spell, off,
      SUM(CASE WHEN ahead < 1073741824 THEN ahead ELSE ahead - 2147483648 END) OVER (
        PARTITION BY run_id, partition, pid, epoch, spell ORDER BY off
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS place
    FROM (
      SELECT run_id, partition, pid, epoch, spell, off,
        (seq - LAG(seq, 1, seq - 1) OVER (
          PARTITION BY run_id, partition, pid, epoch, spell ORDER BY off
        ) + 2147483648) % 2147483648 AS ahead
      FROM promised
    ) steps
  ) places
) w
WHERE place > furthest + 1
GROUP BY run_id;

-- sim-I05
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT run_id, epoch, seq,
    MAX(epoch) OVER (
      PARTITION BY run_id, partition, pid, spell ORDER BY off
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS newest
  FROM promised
) w
WHERE epoch < newest OR (epoch > newest AND seq <> 0)
GROUP BY run_id;

-- sim-I34
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT d.run_id, d.eid
  FROM (
    SELECT run_id, partition, value, eid, client, off, pid, epoch,
      LAG(pid) OVER (PARTITION BY run_id, partition, value ORDER BY off) AS old_pid,
      LAG(epoch) OVER (PARTITION BY run_id, partition, value ORDER BY off) AS old_epoch,
      LAG(chain) OVER (PARTITION BY run_id, partition, value ORDER BY off) AS old_chain,
      LAG(off) OVER (PARTITION BY run_id, partition, value ORDER BY off) AS old_off
    FROM canon
  ) d
  JOIN (
    SELECT run_id, client, pid, epoch, MIN(eid) AS eid
    FROM ev WHERE kind = 'send'
    GROUP BY run_id, client, pid, epoch
  ) began ON began.run_id = d.run_id AND began.client = d.client AND began.pid = d.old_pid
    AND began.epoch = d.old_epoch
  JOIN (
    SELECT run_id, client, pid, epoch, MIN(eid) AS eid
    FROM ev WHERE kind = 'send'
    GROUP BY run_id, client, pid, epoch
  ) anew ON anew.run_id = d.run_id AND anew.client = d.client AND anew.pid = d.pid
    AND anew.epoch = d.epoch
  JOIN (
    SELECT e.run_id, e.client, e.pid, e.epoch,
      MIN(CASE WHEN late.eid IS NOT NULL OR gone.eid IS NOT NULL THEN e.eid END) AS outdated,
      MIN(CASE WHEN late.eid IS NULL AND gone.eid IS NULL AND ((e.seq = 0 AND COALESCE(opened.seq, 0) = 0)
        OR (held.eid IS NOT NULL AND COALESCE(began.eid, -1) < e.eid)) THEN e.eid END) AS wrongly,
      MIN(CASE WHEN late.eid IS NULL AND gone.eid IS NULL AND draining.client IS NULL
        THEN e.eid END) AS gap
    FROM (
      SELECT run_id, partition, client, pid, epoch, seq, eid, seq AS near
      FROM ev WHERE kind = 'error' AND code = 'OUT_OF_ORDER_SEQUENCE_NUMBER'
      UNION ALL
      SELECT run_id, partition, client, pid, epoch, seq, eid,
        (seq + 2147483647) % 2147483648 AS near
      FROM ev WHERE kind = 'error' AND code = 'OUT_OF_ORDER_SEQUENCE_NUMBER'
    ) e
    LEFT JOIN canon held ON held.run_id = e.run_id AND held.partition = e.partition
      AND held.pid = e.pid AND held.epoch = e.epoch AND held.seq = e.near
    LEFT JOIN (
      SELECT run_id, partition, chain, MIN(eid) AS eid
      FROM ev WHERE kind = 'append'
      GROUP BY run_id, partition, chain
    ) began ON began.run_id = held.run_id AND began.partition = held.partition
      AND began.chain = held.chain
    LEFT JOIN (
      SELECT DISTINCT run_id, client FROM ev WHERE kind = 'inv' AND code = 'librdkafka'
    ) draining ON draining.run_id = e.run_id AND draining.client = e.client
    LEFT JOIN outdated late ON late.run_id = e.run_id AND late.partition = e.partition
      AND late.pid = e.pid AND late.epoch = e.epoch AND late.seq = e.seq AND late.eid < e.eid
    LEFT JOIN canon itself ON itself.run_id = e.run_id AND itself.partition = e.partition
      AND itself.pid = e.pid AND itself.epoch = e.epoch AND itself.seq = e.seq
    LEFT JOIN ev gone ON gone.run_id = e.run_id AND gone.kind = 'expire'
      AND gone.partition = e.partition AND gone.pid = e.pid AND gone.off > itself.off
      AND gone.eid < e.eid
    LEFT JOIN (
      SELECT s.run_id, s.partition, s.pid, s.epoch, s.seq
      FROM ev s
      JOIN (
        SELECT run_id, partition, pid, epoch, MIN(eid) AS eid
        FROM ev WHERE kind = 'send'
        GROUP BY run_id, partition, pid, epoch
      ) f ON f.run_id = s.run_id AND f.eid = s.eid
    ) opened ON opened.run_id = e.run_id AND opened.partition = e.partition
      AND opened.pid = e.pid AND opened.epoch = e.epoch
    GROUP BY e.run_id, e.client, e.pid, e.epoch
  ) refused ON refused.run_id = d.run_id AND refused.client = d.client
    AND refused.pid = d.old_pid AND refused.epoch = d.old_epoch
  LEFT JOIN ev given_up ON given_up.run_id = d.run_id AND given_up.kind = 'info'
    AND given_up.client = d.client AND given_up.eid > began.eid AND given_up.eid < anew.eid
  LEFT JOIN ev forgotten ON forgotten.run_id = d.run_id AND forgotten.kind = 'expire'
    AND forgotten.partition = d.partition AND forgotten.pid = d.old_pid
    AND forgotten.off > d.old_off AND forgotten.off <= d.off
  LEFT JOIN canon later ON later.run_id = d.run_id AND later.partition = d.partition
    AND later.pid = d.old_pid AND later.epoch = d.old_epoch AND later.off > d.old_off
    AND later.chain <> d.old_chain
  WHERE d.pid >= 0 AND d.epoch >= 0 AND d.old_pid >= 0 AND d.old_epoch >= 0
    AND (d.pid <> d.old_pid OR d.epoch <> d.old_epoch)
    AND (refused.wrongly < anew.eid
      OR (COALESCE(refused.outdated, anew.eid) >= anew.eid AND refused.gap < anew.eid))
    AND given_up.eid IS NULL AND forgotten.eid IS NULL
  GROUP BY d.run_id, d.eid
  HAVING COUNT(DISTINCT later.chain) < 5
) copies
GROUP BY run_id;

-- sim-I36
WITH gaps AS (
  SELECT run_id, node, inc, partition, pid, epoch, seq, seq_last, eid,
    MIN(eid) OVER (
      PARTITION BY run_id, node, inc, partition, pid, epoch, seq, seq_last, term
    ) AS since
  FROM ev WHERE kind = 'decide' AND code = 'gap'
),
asked AS (
  SELECT l.run_id, l.eid, l.partition, l.pid, l.epoch, l.seq, l.seq_last, g.since
  FROM (
    SELECT a.run_id, a.eid, a.node, a.inc, a.partition, a.pid, a.epoch, a.seq, a.seq_last,
      MAX(g.eid) AS latest
    FROM ev a
    JOIN gaps g ON g.run_id = a.run_id AND g.node = a.node AND g.inc = a.inc
      AND g.partition = a.partition AND g.pid = a.pid AND g.epoch = a.epoch AND g.seq = a.seq
      AND g.seq_last = a.seq_last AND g.eid < a.eid
    WHERE a.kind = 'answer' AND a.code = 'OUT_OF_ORDER_SEQUENCE_NUMBER'
      AND a.pid >= 0 AND a.epoch >= 0
    GROUP BY a.run_id, a.eid, a.node, a.inc, a.partition, a.pid, a.epoch, a.seq, a.seq_last
  ) l
  JOIN gaps g ON g.run_id = l.run_id AND g.eid = l.latest
),
newest AS (
  SELECT q.run_id, q.eid, q.partition, q.pid, q.epoch, q.seq, q.seq_last, q.since,
    MAX(p.log_index) AS last
  FROM asked q
  JOIN ev p ON p.run_id = q.run_id AND p.partition = q.partition AND p.pid = q.pid
    AND p.kind = 'apply' AND p.eid < q.since
  GROUP BY q.run_id, q.eid, q.partition, q.pid, q.epoch, q.seq, q.seq_last, q.since
),
forgotten AS (
  SELECT x.run_id, x.partition, x.pid, x.log_index,
    MIN(CASE WHEN f.eid < w.eid AND f.eid < x.eid THEN f.eid
      WHEN w.eid < x.eid THEN w.eid ELSE x.eid END) AS eid
  FROM ev x
  LEFT JOIN ev a ON a.run_id = x.run_id AND a.partition = x.partition AND a.node = x.node
    AND a.log_index = x.log_index AND a.kind = 'apply'
  LEFT JOIN ev w ON w.run_id = a.run_id AND w.partition = a.partition
    AND w.log_index = a.log_index AND w.term = a.term AND w.kind = 'append'
  LEFT JOIN ev f ON f.run_id = w.run_id AND f.partition = w.partition AND f.node = w.node
    AND f.log_index = x.aux AND f.kind = 'decide' AND f.code = 'table full'
  WHERE x.kind = 'expire'
  GROUP BY x.run_id, x.partition, x.pid, x.log_index
),
gone AS (
  SELECT q.run_id, q.eid, MAX(x.log_index) AS last
  FROM asked q
  JOIN forgotten x ON x.run_id = q.run_id AND x.partition = q.partition AND x.pid = q.pid
    AND x.eid < q.since
  GROUP BY q.run_id, q.eid
)
SELECT n.run_id, COUNT(DISTINCT n.eid) AS n
FROM newest n
JOIN ev p ON p.run_id = n.run_id AND p.partition = n.partition AND p.pid = n.pid
  AND p.kind = 'apply' AND p.epoch = n.epoch AND p.eid < n.since
  AND ((p.log_index = n.last AND (p.seq_last + 1) % 2147483648 = n.seq)
    OR (p.seq = n.seq AND p.seq_last = n.seq_last))
LEFT JOIN gone ON gone.run_id = n.run_id AND gone.eid = n.eid
LEFT JOIN outdated late ON late.run_id = n.run_id AND late.partition = n.partition
  AND late.pid = n.pid AND late.epoch = n.epoch AND late.seq = n.seq AND late.eid < n.since
WHERE late.eid IS NULL AND p.log_index >= COALESCE(gone.last, 0)
GROUP BY n.run_id;

-- sim-I45
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT run_id, aux,
    MAX(aux) OVER (
      PARTITION BY run_id, node, inc, partition, client, op, pid ORDER BY eid
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS latest
  FROM (
    SELECT run_id, node, inc, partition, client, op, pid, aux, MIN(eid) AS eid
    FROM ev
    WHERE kind = 'decide' AND aux IS NOT NULL
    GROUP BY run_id, node, inc, partition, client, op, pid, aux
  ) firsts
) w
WHERE aux < latest
GROUP BY run_id;

-- sim-I51: too early; or, with a full table, before a producer that is idle for longer
WITH own AS (
  SELECT e.run_id, e.eid, e.partition, e.node, e.pid, e.aux, e.log_index, MAX(a.eid) AS entry_eid
  FROM ev e
  JOIN ev a ON a.run_id = e.run_id AND a.kind = 'append' AND a.partition = e.partition
    AND a.node = e.node AND a.log_index = e.log_index AND a.eid < e.eid
  WHERE e.kind = 'expire'
  GROUP BY e.run_id, e.eid, e.partition, e.node, e.pid, e.aux, e.log_index
),
decided AS (
  SELECT x.*, entry.inc, entry.term, entry.t_us, s.expiry
  FROM own x
  JOIN ev entry ON entry.run_id = x.run_id AND entry.eid = x.entry_eid AND entry.aux = 1
  JOIN (
    SELECT run_id, MAX(value) AS expiry
    FROM ev WHERE kind = 'phase' AND code = 'load' GROUP BY run_id
  ) s ON s.run_id = x.run_id
  WHERE s.expiry > 0
),
made_room AS (
  SELECT DISTINCT d.*
  FROM decided d
  JOIN ev f ON f.run_id = d.run_id AND f.kind = 'decide' AND f.code = 'table full'
    AND f.partition = d.partition AND f.node = d.node AND f.term = d.term AND f.log_index = d.aux
),
known AS (
  SELECT d.run_id, d.eid, a.pid, MAX(a.log_index) AS place
  FROM made_room d
  JOIN ev a ON a.run_id = d.run_id AND a.kind = 'apply' AND a.partition = d.partition
    AND a.pid >= 0 AND a.log_index <= d.aux
  GROUP BY d.run_id, d.eid, a.pid
),
open_requests AS (
  SELECT d.run_id, d.eid, q.pid
  FROM made_room d
  JOIN ev q ON q.run_id = d.run_id AND q.kind IN ('decide', 'answer') AND q.node = d.node
    AND q.partition = d.partition AND q.eid < d.entry_eid
  GROUP BY d.run_id, d.eid, q.pid, q.inc, q.epoch, q.seq, q.seq_last
  HAVING MAX(CASE WHEN q.kind = 'decide' THEN q.eid ELSE -1 END)
    > MAX(CASE WHEN q.kind = 'answer' THEN q.eid ELSE -1 END)
)
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT x.run_id
  FROM decided x
  JOIN (
    SELECT run_id, partition, node, inc, pid, eid, t_us,
      LEAD(eid) OVER (PARTITION BY run_id, partition, node, inc, pid ORDER BY eid) AS next_eid
    FROM ev WHERE kind = 'apply' AND pid IS NOT NULL
  ) seen ON seen.run_id = x.run_id AND seen.partition = x.partition AND seen.node = x.node
    AND seen.inc = x.inc AND seen.pid = x.pid AND seen.eid < x.entry_eid
    AND (seen.next_eid IS NULL OR seen.next_eid > x.entry_eid)
  LEFT JOIN ev clock ON clock.run_id = x.run_id AND clock.kind = 'fault' AND clock.node = x.node
    AND clock.code LIKE 'its clock%'
  LEFT JOIN ev filled ON filled.run_id = x.run_id AND filled.kind = 'decide'
    AND filled.code = 'table full' AND filled.partition = x.partition AND filled.node = x.node
    AND filled.term = x.term AND filled.eid < x.entry_eid
  WHERE clock.eid IS NULL AND filled.eid IS NULL AND 10 * (x.t_us - seen.t_us) < 9 * x.expiry
  UNION ALL
  SELECT d.run_id
  FROM made_room d
  JOIN known mine ON mine.run_id = d.run_id AND mine.eid = d.eid AND mine.pid = d.pid
  JOIN known other ON other.run_id = d.run_id AND other.eid = d.eid AND other.place < mine.place
  LEFT JOIN ev gone ON gone.run_id = d.run_id AND gone.kind = 'expire'
    AND gone.partition = d.partition AND gone.pid = other.pid
    AND gone.log_index > other.place AND gone.log_index <= d.log_index
  LEFT JOIN open_requests asked ON asked.run_id = d.run_id AND asked.eid = d.eid
    AND asked.pid = other.pid
  WHERE gone.eid IS NULL AND asked.eid IS NULL
) x
GROUP BY run_id;
