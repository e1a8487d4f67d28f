-- What the statements share. Table `ev` has the rows of any number of runs: run_id, seed, and the
-- columns of a history. Every key contains run_id and partition; a key with a client's op or value
-- needs no partition.

-- view log_start: records below it may be gone
SELECT run_id, partition, MAX(CASE WHEN kind = 'apply' THEN aux ELSE off END) AS start_off
FROM ev
WHERE (kind = 'snapshot' AND off > 0) OR (kind = 'apply' AND aux > 0)
GROUP BY run_id, partition;

-- view canon: the canonical log, with the ops that clients were handed
SELECT f.run_id, f.partition, f.off, f.pid, f.epoch, f.seq, f.value, f.chain, f.eid, i.op, i.client
FROM ev f
JOIN (
  SELECT run_id, partition, node
  FROM (
    SELECT run_id, partition, node,
      ROW_NUMBER() OVER (
        PARTITION BY run_id, partition ORDER BY MAX(off) DESC, MIN(off), node
      ) AS place
    FROM ev
    WHERE kind = 'final' AND aux = 1
    GROUP BY run_id, partition, node
  ) ranked
  WHERE place = 1
) best ON best.run_id = f.run_id AND best.partition = f.partition AND best.node = f.node
LEFT JOIN ev i ON i.run_id = f.run_id AND i.kind = 'inv' AND i.value = f.value
WHERE f.kind = 'final' AND f.aux = 1;

-- view cut_short: runs that ended before their logs were read, by an anomaly or because they did not
-- settle. A history without phases counts as complete
SELECT run_id
FROM ev
WHERE kind = 'phase'
GROUP BY run_id HAVING MAX(CASE WHEN code = 'done' THEN 1 ELSE 0 END) = 0;

-- view settled: nodes and partitions that must agree at the end, and when the node was healed
SELECT g.run_id, g.partition, g.node, g.healed_us
FROM (
  SELECT p.run_id, p.partition, p.node, MAX(h.t_us) AS healed_us
  FROM ev p
  JOIN ev h ON h.run_id = p.run_id AND h.node = p.node AND h.kind = 'phase' AND h.code = 'heal'
  WHERE p.code = 'final'
  GROUP BY p.run_id, p.partition, p.node
) g
JOIN (
  SELECT run_id, MAX(CASE WHEN code = 'heal' THEN eid END) AS healed
  FROM ev WHERE kind = 'phase'
  GROUP BY run_id HAVING MAX(CASE WHEN code = 'done' THEN 1 ELSE 0 END) = 1
) d ON d.run_id = g.run_id
LEFT JOIN ev x ON x.run_id = g.run_id AND x.partition = g.partition AND x.kind = 'phase'
  AND x.code = 'excused' AND x.eid > d.healed
WHERE x.eid IS NULL;

-- view forgets: where the log forgets a producer with nothing in flight: the leader that decided it
-- had applied all that the producer wrote before
SELECT x.run_id, x.partition, x.pid, x.off
FROM (
  SELECT DISTINCT run_id, partition, pid, off, log_index, aux
  FROM ev
  WHERE kind = 'expire' AND off IS NOT NULL AND aux IS NOT NULL
) x
LEFT JOIN ev a ON a.run_id = x.run_id AND a.partition = x.partition AND a.pid = x.pid
  AND a.kind = 'apply' AND a.log_index > x.aux
GROUP BY x.run_id, x.partition, x.pid, x.off, x.log_index, x.aux
HAVING SUM(CASE WHEN a.log_index < x.log_index THEN 1 ELSE 0 END) = 0;

-- view promised: the canonical records of idempotent producers. spell: how often the log had
-- forgotten the producer before (docs/decisions/0012). place: which copy of the value it is
SELECT run_id, partition, off, pid, epoch, seq, value, op, client, place, spell
FROM (
  SELECT run_id, partition, off, pid, epoch, seq, value, op, client, place, forgot,
    SUM(forgot) OVER (
      PARTITION BY run_id, partition, pid ORDER BY off, forgot DESC
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS spell
  FROM (
    SELECT run_id, partition, off, pid, epoch, seq, value, op, client, 0 AS forgot,
      ROW_NUMBER() OVER (PARTITION BY run_id, partition, value ORDER BY off) AS place
    FROM canon
    UNION ALL
    SELECT run_id, partition, off, pid, 0, 0, 0, 0, 0, 1, 0
    FROM forgets
  ) joined
) spells
WHERE forgot = 0 AND pid >= 0 AND epoch >= 0;

-- view deleted: values with a copy that was committed below the start of the canonical log. They are
-- found by the batch that was applied there, as its client had sent it: from its first record to the
-- last one that was deleted, in the order in which the client was handed them
SELECT DISTINCT run_id, partition, value
FROM (
  SELECT run_id, partition, value, place, handed,
    MAX(ends) OVER (
      PARTITION BY run_id, partition, client ORDER BY place, handed
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS ends
  FROM (
    SELECT run_id, partition, client, value, seq AS place, 1 AS handed, CAST(NULL AS BIGINT) AS ends
    FROM ev
    WHERE kind = 'inv' AND seq IS NOT NULL
    UNION ALL
    SELECT s.run_id, s.partition, s.client, NULL, f.seq, 0,
      f.seq + gone.records
    FROM (
      SELECT a.run_id, a.partition, a.pid, a.epoch, a.seq,
        MAX(LEAST(
          begins.off - a.off, (a.seq_last - a.seq + 2147483648) % 2147483648 + 1
        )) AS records
      FROM ev a
      JOIN (
        SELECT run_id, partition, MIN(off) AS off FROM canon GROUP BY run_id, partition
      ) begins ON begins.run_id = a.run_id AND begins.partition = a.partition
      WHERE a.kind = 'apply' AND a.pid >= 0 AND a.epoch >= 0 AND a.off < begins.off
      GROUP BY a.run_id, a.partition, a.pid, a.epoch, a.seq
    ) gone
    JOIN ev s ON s.run_id = gone.run_id AND s.partition = gone.partition AND s.kind = 'send'
      AND s.pid = gone.pid AND s.epoch = gone.epoch AND s.seq = gone.seq
    JOIN ev f ON f.run_id = s.run_id AND f.kind = 'inv' AND f.op = s.op
  ) reaches
) w
WHERE handed = 1 AND place < ends;

-- view outdated: batches that brokers need not remember any more, with the row that appended the
-- fifth batch after each. Batches that were deleted since are in no log, and come from `apply`
SELECT run_id, partition, pid, epoch, seq, MIN(eid) AS eid
FROM (
  SELECT run_id, partition, pid, epoch, seq,
    LEAD(eid, 5) OVER (PARTITION BY run_id, partition, pid, epoch ORDER BY off) AS eid
  FROM (
    SELECT c.run_id, c.partition, c.pid, c.epoch, c.seq, c.off, COALESCE(a.eid, -1) AS eid
    FROM (
      SELECT run_id, partition, pid, epoch, seq, off, chain,
        ROW_NUMBER() OVER (PARTITION BY run_id, partition, chain ORDER BY off) AS place
      FROM canon WHERE pid >= 0 AND epoch >= 0
    ) c
    LEFT JOIN (
      SELECT run_id, partition, chain, MIN(eid) AS eid
      FROM ev WHERE kind = 'append'
      GROUP BY run_id, partition, chain
    ) a ON a.run_id = c.run_id AND a.partition = c.partition AND a.chain = c.chain
    WHERE c.place = 1
    UNION ALL
    SELECT d.run_id, d.partition, d.pid, d.epoch, d.seq, d.off, COALESCE(a.eid, -1)
    FROM (
      SELECT run_id, partition, pid, epoch, seq, off, term, log_index,
        ROW_NUMBER() OVER (PARTITION BY run_id, partition, off ORDER BY eid) AS place
      FROM ev WHERE kind = 'apply' AND pid >= 0 AND epoch >= 0
    ) d
    LEFT JOIN (
      SELECT run_id, partition, MIN(off) AS off FROM canon GROUP BY run_id, partition
    ) begins ON begins.run_id = d.run_id AND begins.partition = d.partition
    LEFT JOIN (
      SELECT run_id, partition, term, log_index, MIN(eid) AS eid
      FROM ev WHERE kind = 'append'
      GROUP BY run_id, partition, term, log_index
    ) a ON a.run_id = d.run_id AND a.partition = d.partition AND a.term = d.term
      AND a.log_index = d.log_index
    WHERE d.place = 1 AND (begins.off IS NULL OR d.off < begins.off)
  ) batches
) behind
WHERE eid IS NOT NULL
GROUP BY run_id, partition, pid, epoch, seq;

-- view erased: acknowledgements of records below the log start. If one has no offset, the log is
-- searched for the same producer, epoch and sequence; with acks 0 it may be any record
SELECT o.run_id, o.eid
FROM ev o
JOIN log_start s ON s.run_id = o.run_id AND s.partition = o.partition
WHERE o.kind = 'ok' AND COALESCE(o.off, -1) < s.start_off AND (o.off >= 0 OR o.acks <> -1)
UNION
SELECT o.run_id, o.eid
FROM ev o
JOIN log_start s ON s.run_id = o.run_id AND s.partition = o.partition
JOIN ev a ON a.run_id = o.run_id AND a.partition = o.partition AND a.pid = o.pid
  AND a.epoch = o.epoch
WHERE o.kind = 'ok' AND COALESCE(o.off, -1) < 0 AND o.acks = -1 AND a.kind = 'apply'
  AND (o.seq - a.seq + 2147483648) % 2147483648 <= (a.seq_last - a.seq + 2147483648) % 2147483648
  AND a.off + (o.seq - a.seq + 2147483648) % 2147483648 < s.start_off;

-- view acked: acknowledgements that promise something
SELECT o.run_id, o.partition, o.eid, o.op, o.off, i.value
FROM ev o
JOIN ev i ON i.run_id = o.run_id AND i.kind = 'inv' AND i.op = o.op
WHERE o.kind = 'ok' AND o.acks = -1;

-- view marks: per node, the last log index that is known to survive a crash, from each row on
SELECT run_id, partition, node, eid, kind, log_index, place, spell,
  CASE WHEN spell = 0 THEN 0 ELSE MIN(place) OVER (
    PARTITION BY run_id, partition, node, spell ORDER BY eid
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) END AS mark
FROM (
  SELECT run_id, partition, node, eid, kind, log_index,
    CASE WHEN kind IN ('truncate', 'snapshot') THEN log_index - 1 ELSE log_index END AS place,
    SUM(CASE WHEN kind = 'durable' THEN 1 ELSE 0 END) OVER (
      PARTITION BY run_id, partition, node ORDER BY eid
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS spell
  FROM ev
  WHERE kind IN ('durable', 'truncate', 'crash', 'start')
    OR (kind = 'snapshot' AND code = 'installed')
) spells;

-- view committed: what leaders committed, with the chain of the entry that they had there
SELECT w.run_id, w.partition, w.eid, w.term, w.log_index, a.chain
FROM (
  SELECT run_id, partition, eid, kind, term, log_index, aux,
    MAX(CASE WHEN kind = 'append' THEN eid END) OVER (
      PARTITION BY run_id, partition, node, log_index ORDER BY eid
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS written
  FROM ev
  WHERE kind IN ('append', 'commit')
) w
LEFT JOIN ev a ON a.run_id = w.run_id AND a.eid = w.written
WHERE w.kind = 'commit' AND w.aux = 1;

-- view told: states of producer tables, as nodes report them; rests: whether a snapshot is below
SELECT s.run_id, s.partition, s.eid, s.log_index, s.state_hash,
  CASE WHEN i.eid < s.eid OR COALESCE(b.log_index, 1) <> 1 THEN 1 ELSE 0 END AS rests
FROM ev s
LEFT JOIN (
  SELECT run_id, partition, node, inc, MIN(eid) AS eid
  FROM ev
  WHERE kind = 'snapshot' AND code = 'installed'
  GROUP BY run_id, partition, node, inc
) i ON i.run_id = s.run_id AND i.partition = s.partition AND i.node = s.node AND i.inc = s.inc
LEFT JOIN (
  SELECT run_id, partition, node, inc, log_index,
    ROW_NUMBER() OVER (PARTITION BY run_id, partition, node, inc ORDER BY eid) AS place
  FROM ev
  WHERE kind = 'apply'
) b ON b.run_id = s.run_id AND b.partition = s.partition AND b.node = s.node AND b.inc = s.inc
  AND b.place = 1
WHERE s.kind = 'state'
UNION ALL
SELECT run_id, partition, eid, aux, state_hash, 1
FROM ev
WHERE kind = 'snapshot' AND state_hash IS NOT NULL AND aux IS NOT NULL;
