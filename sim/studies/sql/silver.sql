-- Silver: what happened in the runs of a batch of waves. Table `ev` has the rows of their
-- histories, `bronze` also the rows that are not events (`sim/studies/bronze.py`); `canon` and
-- `erased` are the views of the invariants. The head of a statement says what a row is, and the
-- type and meaning of each column: docs/reference/study-tables.md is written from it. Times are
-- microseconds of the simulator's clock.

-- view acks: acknowledged records, each with the record that was handed over, and whether it is
-- lost; NULL if the run ended before the logs were read
SELECT o.run_id, o.variant, o.partition, o.client, o.node, o.eid, o.op, o.off, o.acks,
  o.t_us AS ok_us, i.t_us AS inv_us, i.eid AS inv_eid, i.value,
  CASE
    WHEN x.run_id IS NOT NULL THEN NULL
    WHEN c.value IS NULL AND e.eid IS NULL THEN 1 ELSE 0
  END AS lost
FROM ev o
JOIN ev i ON i.run_id = o.run_id AND i.kind = 'inv' AND i.op = o.op
LEFT JOIN (SELECT DISTINCT run_id, partition, value FROM canon) c
  ON c.run_id = o.run_id AND c.partition = o.partition AND c.value = i.value
LEFT JOIN erased e ON e.run_id = o.run_id AND e.eid = o.eid
LEFT JOIN cut_short x ON x.run_id = o.run_id
WHERE o.kind = 'ok';

-- view places: records that producers were handed, by the batch that contains them: its first op
SELECT run_id, client, partition, op,
  FIRST_VALUE(op) OVER (
    PARTITION BY run_id, client, partition, batch ORDER BY eid
  ) AS first_op,
  ROW_NUMBER() OVER (PARTITION BY run_id, client, partition, batch ORDER BY eid) - 1 AS place
FROM (
  SELECT i.run_id, i.client, i.partition, i.op, i.eid,
    SUM(CASE WHEN b.op IS NULL THEN 0 ELSE 1 END) OVER (
      PARTITION BY i.run_id, i.client, i.partition ORDER BY i.eid
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS batch
  FROM ev i
  LEFT JOIN (SELECT DISTINCT run_id, client, op FROM ev WHERE kind = 'send') b
    ON b.run_id = i.run_id AND b.client = i.client AND b.op = i.op
  WHERE i.kind = 'inv'
) filled;

-- view gone: lost records, where they had been, and the row in which the node said so
SELECT l.run_id, l.eid, l.partition, l.node, l.off, 0 AS refused, CAST(NULL AS STRING) AS code,
  COALESCE(MAX(a.eid), l.eid) AS told
FROM acks l
LEFT JOIN ev a ON a.run_id = l.run_id AND a.kind = 'answer' AND a.client = l.client
  AND a.partition = l.partition AND a.node = l.node AND a.eid < l.eid
  AND a.off >= 0 AND a.off <= l.off
WHERE l.lost = 1 AND l.off >= 0
GROUP BY l.run_id, l.eid, l.partition, l.node, l.off
UNION ALL
SELECT l.run_id, l.eid, l.partition, a.node, a.off + p.place,
  CASE WHEN a.eid IS NOT NULL AND COALESCE(a.off, -1) < 0 THEN 1 ELSE 0 END, a.code, a.eid
FROM acks l
JOIN places p ON p.run_id = l.run_id AND p.op = l.op
LEFT JOIN (
  SELECT run_id, client, op, MAX(eid) AS eid
  FROM ev
  WHERE kind = 'answer'
  GROUP BY run_id, client, op
) newest ON newest.run_id = p.run_id AND newest.client = p.client AND newest.op = p.first_op
LEFT JOIN ev a ON a.run_id = newest.run_id AND a.eid = newest.eid
WHERE l.lost = 1 AND COALESCE(l.off, -1) < 0;

-- view cuts: of each lost record, the first row after it was written that truncated the log below
-- it
SELECT w.run_id, w.record, x.eid, x.kind
FROM (
  SELECT s.run_id, s.record, MIN(c.eid) AS eid
  FROM (
    SELECT g.run_id, g.eid AS record, g.partition, g.node, g.off,
      COALESCE(MAX(w.eid), g.told) AS since
    FROM gone g
    LEFT JOIN ev w ON w.run_id = g.run_id AND w.kind = 'append' AND w.partition = g.partition
      AND w.node = g.node AND w.eid < g.told AND w.off <= g.off
    WHERE g.refused = 0
    GROUP BY g.run_id, g.eid, g.partition, g.node, g.off, g.told
  ) s
  JOIN ev c ON c.run_id = s.run_id AND c.kind IN ('truncate', 'crash') AND c.partition = s.partition
    AND c.node = s.node AND c.eid > s.since AND c.off <= s.off
  GROUP BY s.run_id, s.record
) w
JOIN ev x ON x.run_id = w.run_id AND x.eid = w.eid;

-- view flights: batches in flight for which a client waits: from a row of kind send to the next row
-- about the batch
SELECT run_id, variant, client, partition, op, node, eid, t_us, ended_eid
FROM (
  SELECT run_id, variant, client, partition, op, node, eid, t_us, kind,
    LEAD(eid) OVER (PARTITION BY run_id, client, op ORDER BY eid) AS ended_eid,
    LEAD(acks) OVER (PARTITION BY run_id, client, op ORDER BY eid) AS ended_acks
  FROM ev
  WHERE kind IN ('send', 'error', 'ok', 'fail', 'info') AND op IS NOT NULL
) w
WHERE kind = 'send' AND COALESCE(ended_acks, -1) <> 0;

-- view handovers: a partition gets a leader in a higher term than ever before, and had a leader
-- before
SELECT run_id, variant, partition, term, node, inc, eid, t_us, log_index, next_eid,
  old_term, old_node, old_inc, old_eid, old_us
FROM (
  SELECT run_id, variant, partition, term, node, inc, eid, t_us, log_index,
    LEAD(eid) OVER (PARTITION BY run_id, partition ORDER BY eid) AS next_eid,
    LAG(term) OVER (PARTITION BY run_id, partition ORDER BY eid) AS old_term,
    LAG(node) OVER (PARTITION BY run_id, partition ORDER BY eid) AS old_node,
    LAG(inc) OVER (PARTITION BY run_id, partition ORDER BY eid) AS old_inc,
    LAG(eid) OVER (PARTITION BY run_id, partition ORDER BY eid) AS old_eid,
    LAG(t_us) OVER (PARTITION BY run_id, partition ORDER BY eid) AS old_us
  FROM (
    SELECT run_id, variant, partition, term, node, inc, eid, t_us, log_index,
      MAX(term) OVER (
        PARTITION BY run_id, partition ORDER BY eid
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS highest
    FROM ev
    WHERE kind = 'leader' AND partition >= 0
  ) l
  WHERE highest IS NULL OR term > highest
) led
WHERE old_eid IS NOT NULL;

-- view ends: of each handover, when a node first stood for the next term, and what the old leader
-- did until then: how its leadership ended, and the last acknowledgement that a client heard from
-- it
SELECT s.run_id, s.eid, s.candidate_eid, s.candidate_us, s.old_eid, s.old_us, s.old_node,
  s.partition,
  MIN(CASE
    WHEN w.kind IN ('crash', 'stepdown') OR (w.kind = 'pause' AND w.eid > COALESCE(s.worked, -1))
    THEN w.eid
  END) AS end_eid,
  MAX(CASE WHEN w.kind = 'ok' THEN w.eid END) AS served_eid
FROM (
  SELECT c.run_id, c.eid, c.partition, c.old_node, c.old_inc, c.old_term, c.old_eid, c.old_us,
    c.candidate_eid, c.candidate_us, MAX(d.eid) AS worked
  FROM (
    SELECT h.run_id, h.eid, h.partition, h.old_node, h.old_inc, h.old_term, h.old_eid, h.old_us,
      COALESCE(MIN(t.eid), h.eid) AS candidate_eid, COALESCE(MIN(t.t_us), h.t_us) AS candidate_us
    FROM handovers h
    LEFT JOIN ev t ON t.run_id = h.run_id AND t.kind = 'term' AND t.partition = h.partition
      AND t.term > h.old_term AND t.eid > h.old_eid AND t.eid < h.eid
    GROUP BY h.run_id, h.eid, h.t_us, h.partition, h.old_node, h.old_inc, h.old_term, h.old_eid,
      h.old_us
  ) c
  LEFT JOIN ev d ON d.run_id = c.run_id AND d.partition = c.partition AND d.node = c.old_node
    AND d.eid > c.old_eid AND d.eid < c.candidate_eid
    AND ((d.kind = 'commit' AND d.aux = 1) OR (d.kind = 'answer' AND d.code = 'NONE'))
  GROUP BY c.run_id, c.eid, c.partition, c.old_node, c.old_inc, c.old_term, c.old_eid, c.old_us,
    c.candidate_eid, c.candidate_us
) s
LEFT JOIN ev w ON w.run_id = s.run_id AND w.node = s.old_node
  AND w.eid > s.old_eid AND w.eid < s.candidate_eid
  AND (
    (w.kind = 'crash' AND w.partition = s.partition AND w.inc = s.old_inc)
    OR (w.kind = 'stepdown' AND w.partition = s.partition AND w.term = s.old_term)
    OR (w.kind = 'pause' AND w.inc = s.old_inc)
    OR (w.kind = 'ok' AND w.partition = s.partition AND w.acks <> 0)
  )
GROUP BY s.run_id, s.eid, s.candidate_eid, s.candidate_us, s.old_eid, s.old_us, s.old_node,
  s.partition;

-- runs: one row per run
-- run_id BIGINT: number of the run in the study
-- variant BIGINT: number of the variant
-- seed BIGINT: the seed of the run
-- judged BOOLEAN: whether its history is judged in SQL, too
-- broke BIGINT: 1 if an exception that is no verdict ended it: then nothing is known of it
-- verdict VARCHAR: ok, failed or weakened; broke
-- reason VARCHAR: why, in one line; the exception, if the run broke; NULL if there is nothing to
-- say
-- noticed VARCHAR: the first invariant that was found broken; NULL if none was, and in bronze of
-- version 1, which did not keep it
-- steps BIGINT: events of the simulator's kernel; this column and all that follow are NULL if it
-- broke
-- events BIGINT: rows of its history
-- choices BIGINT: choices that were drawn: the length of its tape
-- digest BIGINT: a hash of the whole history and of the order of all events behind it
-- simulated_us BIGINT: its length, on the simulator's clock
-- handed BIGINT: records handed to producers
-- acknowledged BIGINT: records that were acknowledged, with any acks
-- lost BIGINT: how many of these no consumer can ever read (promise-K4); NULL if the run ended
-- before the logs were read: an anomaly ended it, or it did not settle
-- copies BIGINT: second and further copies of records in the canonical logs; NULL if lost is
-- faults BIGINT: faults that the nemesis injected
-- elections BIGINT: leaderships of partitions that began, including the first ones
-- first_us BIGINT: when the first record was handed over; NULL when none was
-- last_us BIGINT: when a client heard the last acknowledgement; NULL when none did
SELECT b.run_id, b.variant, b.seed, b.judged,
  CASE WHEN b.kind = 'breakdown' THEN 1 ELSE 0 END AS broke,
  CASE WHEN b.kind = 'breakdown' THEN 'broke' ELSE b.code END AS verdict,
  CASE
    WHEN b.kind = 'run' THEN b.told
    WHEN COALESCE(b.told, '') = '' THEN b.code
    ELSE b.code || ': ' || b.told
  END AS reason,
  n.code AS noticed, b.aux AS steps, b.off AS events, b.log_index AS choices, b.chain AS digest,
  CASE WHEN b.kind = 'run' THEN b.t_us END AS simulated_us,
  CASE WHEN b.kind = 'run' THEN COALESCE(e.handed, 0) END AS handed,
  CASE WHEN b.kind = 'run' THEN COALESCE(a.acknowledged, 0) END AS acknowledged,
  CASE WHEN b.kind = 'run' AND x.run_id IS NULL THEN COALESCE(a.lost, 0) END AS lost,
  CASE WHEN b.kind = 'run' AND x.run_id IS NULL THEN COALESCE(c.copies, 0) END AS copies,
  CASE WHEN b.kind = 'run' THEN COALESCE(e.faults, 0) END AS faults,
  CASE WHEN b.kind = 'run' THEN COALESCE(e.elections, 0) END AS elections, e.first_us, a.last_us
FROM bronze b
LEFT JOIN (SELECT run_id, code FROM bronze WHERE kind = 'noticed') n ON n.run_id = b.run_id
LEFT JOIN cut_short x ON x.run_id = b.run_id
LEFT JOIN (
  SELECT run_id,
    SUM(CASE WHEN kind = 'inv' THEN 1 ELSE 0 END) AS handed,
    SUM(CASE WHEN kind IN ('fault', 'beyond') THEN 1 ELSE 0 END) AS faults,
    SUM(CASE WHEN kind = 'leader' AND partition >= 0 THEN 1 ELSE 0 END) AS elections,
    MIN(CASE WHEN kind = 'inv' THEN t_us END) AS first_us
  FROM ev
  GROUP BY run_id
) e ON e.run_id = b.run_id
LEFT JOIN (
  SELECT run_id, COUNT(*) AS acknowledged, SUM(lost) AS lost, MAX(ok_us) AS last_us
  FROM acks
  GROUP BY run_id
) a ON a.run_id = b.run_id
LEFT JOIN (
  SELECT run_id, SUM(copies) AS copies
  FROM (
    SELECT run_id, COUNT(*) - COUNT(DISTINCT value) AS copies
    FROM canon
    GROUP BY run_id, partition
  ) p
  GROUP BY run_id
) c ON c.run_id = b.run_id
WHERE b.kind IN ('run', 'breakdown');

-- requests: one row per batch that a producer sent, however often and with whatever numbers
-- run_id BIGINT: number of the run
-- variant BIGINT: number of the variant
-- client BIGINT: number of the producer
-- partition BIGINT: its partition
-- op BIGINT: its first record: a number among all records that were handed over
-- pid BIGINT: producer id with which it was last sent; NULL without one
-- epoch BIGINT: the epoch with which it was last sent
-- seq BIGINT: the sequence of its first record
-- seq_last BIGINT: the sequence of its last record
-- records BIGINT: how many records it has
-- acks BIGINT: what the producer asked for: 0, 1, or -1 for all
-- attempts BIGINT: how often it was sent
-- first_us BIGINT: when it was first sent
-- last_us BIGINT: when it was last sent
-- done_us BIGINT: when the outcome of its records was known; NULL if it never was
-- outcome VARCHAR: ok, fail (certainly not stored), info (nobody knows) or open
-- code VARCHAR: why its producer gave it up; NULL if it did not
-- node BIGINT: the node that acknowledged it, else the one to which it was last sent
-- latency_us BIGINT: from when it was first sent to its acknowledgement; NULL without one, and with
-- acks 0
-- parked BIGINT: how often a leader let it wait for a copy in flight. This column and the next two
-- count the decisions about the batch that was last sent with these numbers
-- duplicates BIGINT: how often a leader found it in its log
-- gaps BIGINT: how often a leader lacked a batch before it
WITH sent AS (
  SELECT run_id, variant, client, partition, op, COUNT(*) AS attempts, MIN(t_us) AS first_us,
    MAX(t_us) AS last_us, MAX(eid) AS last_eid
  FROM ev
  WHERE kind = 'send'
  GROUP BY run_id, variant, client, partition, op
),
finished AS (
  SELECT e.run_id, e.op, e.kind, e.code, e.node, e.t_us
  FROM ev e
  JOIN (
    SELECT run_id, op, MIN(eid) AS eid
    FROM ev
    WHERE kind IN ('ok', 'fail', 'info')
    GROUP BY run_id, op
  ) f ON f.run_id = e.run_id AND f.eid = e.eid
),
sizes AS (
  SELECT p.run_id, p.client, p.first_op AS op, COUNT(*) AS records
  FROM places p
  LEFT JOIN finished f ON f.run_id = p.run_id AND f.op = p.op
  LEFT JOIN finished b ON b.run_id = p.run_id AND b.op = p.first_op
  WHERE COALESCE(f.kind, 'open') = COALESCE(b.kind, 'open')
    AND COALESCE(f.t_us, -1) = COALESCE(b.t_us, -1)
  GROUP BY p.run_id, p.client, p.first_op
),
decided AS (
  SELECT n.run_id, n.client, n.op,
    SUM(CASE WHEN d.code = 'park' THEN 1 ELSE 0 END) AS parked,
    SUM(CASE WHEN d.code = 'duplicate' THEN 1 ELSE 0 END) AS duplicates,
    SUM(CASE WHEN d.code = 'gap' THEN 1 ELSE 0 END) AS gaps
  FROM (
    SELECT run_id, kind, node, code,
      MAX(CASE WHEN kind = 'send' THEN eid END) OVER (
        PARTITION BY run_id, partition, pid, epoch, seq ORDER BY eid
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS sent
    FROM ev
    WHERE kind IN ('send', 'decide') AND pid >= 0
  ) d
  JOIN ev n ON n.run_id = d.run_id AND n.eid = d.sent
  WHERE d.kind = 'decide' AND d.node > 0
  GROUP BY n.run_id, n.client, n.op
)
SELECT b.run_id, b.variant, b.client, b.partition, b.op, s.pid, s.epoch, s.seq, s.seq_last,
  CASE
    WHEN s.seq IS NULL THEN z.records
    ELSE (s.seq_last - s.seq + 2147483648) % 2147483648 + 1
  END AS records,
  i.acks, b.attempts, b.first_us, b.last_us, f.t_us AS done_us,
  COALESCE(f.kind, 'open') AS outcome, f.code, COALESCE(f.node, s.node) AS node,
  CASE WHEN f.kind = 'ok' AND i.acks <> 0 THEN f.t_us - b.first_us END AS latency_us,
  COALESCE(d.parked, 0) AS parked, COALESCE(d.duplicates, 0) AS duplicates,
  COALESCE(d.gaps, 0) AS gaps
FROM sent b
JOIN ev s ON s.run_id = b.run_id AND s.eid = b.last_eid
LEFT JOIN ev i ON i.run_id = b.run_id AND i.kind = 'inv' AND i.op = b.op
LEFT JOIN finished f ON f.run_id = b.run_id AND f.op = b.op
LEFT JOIN sizes z ON z.run_id = b.run_id AND z.client = b.client AND z.op = b.op
LEFT JOIN decided d ON d.run_id = b.run_id AND d.client = b.client AND d.op = b.op;

-- view synced: of each handover, the row in which the new leader committed an entry of its own term
SELECT h.run_id, h.eid, MIN(c.eid) AS synced_eid
FROM handovers h
JOIN ev c ON c.run_id = h.run_id AND c.kind = 'commit' AND c.aux = 1 AND c.inc = h.inc
  AND c.partition = h.partition AND c.node = h.node AND c.term = h.term
  AND c.log_index >= h.log_index AND c.eid > h.eid
GROUP BY h.run_id, h.eid;

-- view served: of each handover, the acknowledgements that clients heard from the new leader: of
-- records that were waiting when it had synced, and of any records
SELECT h.run_id, h.eid, MIN(CASE WHEN k.inv_eid < s.synced_eid THEN k.ok_us END) AS ok_us,
  COUNT(*) AS heard
FROM handovers h
JOIN synced s ON s.run_id = h.run_id AND s.eid = h.eid
JOIN acks k ON k.run_id = h.run_id AND k.partition = h.partition AND k.node = h.node
  AND k.acks <> 0 AND k.eid > s.synced_eid AND (h.next_eid IS NULL OR k.eid < h.next_eid)
GROUP BY h.run_id, h.eid;

-- view waits: records that were handed over and wait for an acknowledgement, and how that ended
SELECT i.run_id, i.partition, i.op, i.eid, MIN(o.eid) AS ended_eid,
  MIN(CASE WHEN o.kind IN ('fail', 'info') THEN o.t_us END) AS gave_up_us
FROM ev i
LEFT JOIN ev o ON o.run_id = i.run_id AND o.op = i.op AND o.kind IN ('ok', 'fail', 'info')
WHERE i.kind = 'inv' AND i.acks <> 0
GROUP BY i.run_id, i.partition, i.op, i.eid;

-- view deposed: handovers whose new leader ended before it served anybody: it had not synced, or
-- those who waited when it had synced waited still
SELECT h.run_id, h.eid
FROM handovers h
LEFT JOIN synced s ON s.run_id = h.run_id AND s.eid = h.eid AND s.synced_eid < h.next_eid
LEFT JOIN served a ON a.run_id = h.run_id AND a.eid = h.eid
LEFT JOIN ends n ON n.run_id = h.run_id AND n.old_eid = h.eid
LEFT JOIN waits w ON w.run_id = h.run_id AND w.partition = h.partition AND w.eid < s.synced_eid
  AND (w.ended_eid IS NULL OR w.ended_eid > COALESCE(n.end_eid, n.candidate_eid))
WHERE h.next_eid IS NOT NULL AND a.heard IS NULL
GROUP BY h.run_id, h.eid
HAVING MAX(s.synced_eid) IS NULL OR COUNT(w.op) > 0;

-- view stops: of each handover, when the old leader stopped serving, and why
SELECT h.run_id, h.eid, e.candidate_us, COALESCE(w.kind, 'silent') AS cause,
  CASE
    WHEN w.kind IN ('crash', 'pause') THEN w.t_us ELSE COALESCE(v.waiting_us, w.t_us)
  END AS lost_us
FROM handovers h
JOIN ends e ON e.run_id = h.run_id AND e.eid = h.eid
LEFT JOIN ev w ON w.run_id = e.run_id AND w.eid = e.end_eid
LEFT JOIN (
  SELECT x.run_id, x.eid, MIN(GREATEST(f.t_us, COALESCE(o.t_us, x.old_us))) AS waiting_us
  FROM ends x
  LEFT JOIN ev o ON o.run_id = x.run_id AND o.eid = x.served_eid
  JOIN flights f ON f.run_id = x.run_id AND f.partition = x.partition AND f.node = x.old_node
    AND f.eid < COALESCE(x.end_eid, x.candidate_eid)
    AND (f.ended_eid IS NULL OR f.ended_eid > COALESCE(x.served_eid, x.old_eid))
  GROUP BY x.run_id, x.eid
) v ON v.run_id = h.run_id AND v.eid = h.eid;

-- view outages: handovers, each with the handovers before it since a leader last served anybody:
-- how many, when the last leader that served had stopped (as the first of them says; NULL if that
-- is not known), and when a node first stood for election. Also: from when on a record that is
-- given up belongs to this outage. A record belongs to the outage in which its wait ended. It may
-- have begun to wait in an earlier one, whose leader then served others
SELECT run_id, eid, variant, partition, term, node, old_node, t_us, next_eid, cause, deposed, outage,
  MIN(COALESCE(lost_us, t_us)) OVER w AS begun_us, COUNT(*) OVER w AS elections,
  FIRST_VALUE(lost_us) OVER w AS lost_us, FIRST_VALUE(candidate_us) OVER w AS candidate_us
FROM (
  SELECT h.run_id, h.eid, h.variant, h.partition, h.term, h.node, h.old_node, h.t_us, h.next_eid,
    s.cause, s.lost_us, s.candidate_us, CASE WHEN d.eid IS NULL THEN 0 ELSE 1 END AS deposed,
    COALESCE(SUM(CASE WHEN d.eid IS NULL THEN 1 ELSE 0 END) OVER (
      PARTITION BY h.run_id, h.partition ORDER BY h.eid
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), 0) AS outage
  FROM handovers h
  JOIN stops s ON s.run_id = h.run_id AND s.eid = h.eid
  LEFT JOIN deposed d ON d.run_id = h.run_id AND d.eid = h.eid
) counted
WINDOW w AS (
  PARTITION BY run_id, partition, outage ORDER BY eid
  ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
);

-- failovers: one row per leadership of a partition in a term higher than any before, except the
-- first one. A phase is NULL if the partition was idle, or if the phase never ended. An outage may
-- take several elections, if the winner is replaced before it served anybody. It counts as one
-- outage: the leadership that ends it has all of it, from when the last leader that served stopped;
-- the leaderships before have NULL phases. The last leader that served stopped with its crash or
-- pause. Otherwise it stopped when a client first waited in vain: the client had sent to it, and
-- heard no acknowledgement since. If nobody waited, a stepdown counts as the stop; with silent, the
-- time is not known, however later leaders that served nobody ended. A record that waited in vain
-- was handed over before synced_us, with acks 1 or all. It was given up after lost_us (if that is
-- NULL, after the first election was won) and before the next outage began, so each record counts
-- once
-- run_id BIGINT: number of the run
-- variant BIGINT: number of the variant
-- partition BIGINT: which partition
-- term BIGINT: the new leader's term
-- old_node BIGINT: the node that led before
-- new_node BIGINT: the node that leads now
-- cause VARCHAR: what ended the old leadership before a node stood for the next one: crash, pause,
-- stepdown, or silent: nothing did, but the others did not hear it any more
-- elections BIGINT: leaderships since a leader last served anybody, including this one: mostly 1
-- lost_us BIGINT: when the last leader that served stopped serving: if elections is 1, the old
-- leader. NULL if that is not known
-- candidate_us BIGINT: when a higher term than that leader's was first written, on any node
-- leader_us BIGINT: when the new leader had won
-- synced_us BIGINT: when it had committed an entry of its own term, so that it could serve
-- ok_us BIGINT: when a client heard its first acknowledgement, with acks 1 or all, of a record that
-- had been handed over before synced_us; NULL if no record waited (idle), or if none that waited
-- was acknowledged
-- gave_up BIGINT: records that waited in vain, with acks 1 or all. If it is above 0 and ok_us is
-- NULL, the outage did not end for any record that had waited
-- detection_us BIGINT: candidate_us - lost_us, including the round of pre-vote; NULL if lost_us is
-- election_us BIGINT: leader_us - candidate_us, including split votes, and leaders that served
-- nobody
-- sync_us BIGINT: synced_us - leader_us
-- retry_us BIGINT: ok_us - synced_us: until clients have found the new leader
-- total_us BIGINT: ok_us - lost_us; NULL if lost_us is
SELECT h.run_id, h.variant, h.partition, h.term, h.old_node, h.node AS new_node, h.cause,
  h.elections, h.lost_us, h.candidate_us, h.t_us AS leader_us, c.t_us AS synced_us, a.ok_us,
  CASE WHEN h.deposed = 0 THEN COALESCE(g.records, 0) END AS gave_up,
  CASE WHEN h.deposed = 0 THEN h.candidate_us - h.lost_us END AS detection_us,
  CASE WHEN h.deposed = 0 THEN h.t_us - h.candidate_us END AS election_us,
  CASE WHEN h.deposed = 0 THEN c.t_us - h.t_us END AS sync_us,
  a.ok_us - c.t_us AS retry_us, a.ok_us - h.lost_us AS total_us
FROM outages h
LEFT JOIN synced s ON s.run_id = h.run_id AND s.eid = h.eid
LEFT JOIN ev c ON c.run_id = s.run_id AND c.eid = s.synced_eid
LEFT JOIN served a ON a.run_id = h.run_id AND a.eid = h.eid
LEFT JOIN (
  SELECT o.run_id, o.eid, COUNT(*) AS records
  FROM outages o
  LEFT JOIN synced s ON s.run_id = o.run_id AND s.eid = o.eid
  LEFT JOIN (
    SELECT run_id, partition, outage, MIN(begun_us) AS begun_us
    FROM outages
    GROUP BY run_id, partition, outage
  ) n ON n.run_id = o.run_id AND n.partition = o.partition AND n.outage = o.outage + 1
  JOIN waits w ON w.run_id = o.run_id AND w.partition = o.partition
    AND w.gave_up_us > o.begun_us
    AND (s.synced_eid IS NULL OR w.eid < s.synced_eid)
    AND (n.begun_us IS NULL OR w.gave_up_us <= n.begun_us)
  GROUP BY o.run_id, o.eid
) g ON g.run_id = h.run_id AND g.eid = h.eid;

-- acked: one row per acknowledgement of a record
-- run_id BIGINT: number of the run
-- variant BIGINT: number of the variant
-- partition BIGINT: its partition
-- op BIGINT: number of the record
-- off BIGINT: its offset, as its client was told; -1 with acks 0, because no answer says it
-- acks BIGINT: what its producer asked for: 0, 1, or -1 for all
-- inv_us BIGINT: when it was handed over
-- ok_us BIGINT: when its client counted it as acknowledged
-- latency_us BIGINT: ok_us - inv_us
-- lost BIGINT: 1 if it is not in the canonical log, and was not deleted. With acks 0 its offset is
-- not known, so it may be one of the deleted ones. NULL if the run ended before the logs were read
-- took VARCHAR: how it was lost: truncate or crash (of a node that had it), refused (with acks 0
-- nobody hears of it), never arrived, undecided (in a log, but not committed at the end), unknown;
-- NULL if it is not lost
-- took_eid BIGINT: the first row after it was written that truncated the log below it; else NULL
-- took_code VARCHAR: how it was refused; else NULL
SELECT a.run_id, a.variant, a.partition, a.op, a.off, a.acks, a.inv_us, a.ok_us,
  a.ok_us - a.inv_us AS latency_us, a.lost,
  CASE
    WHEN COALESCE(a.lost, 0) = 0 THEN NULL
    WHEN h.value IS NOT NULL THEN 'undecided'
    WHEN g.told IS NULL THEN 'never arrived'
    WHEN g.refused = 1 THEN 'refused'
    ELSE COALESCE(c.kind, 'unknown')
  END AS took,
  CASE WHEN h.value IS NULL THEN c.eid END AS took_eid,
  CASE WHEN h.value IS NULL AND g.refused = 1 THEN g.code END AS took_code
FROM acks a
LEFT JOIN gone g ON g.run_id = a.run_id AND g.eid = a.eid
LEFT JOIN cuts c ON c.run_id = a.run_id AND c.record = a.eid
LEFT JOIN (SELECT DISTINCT run_id, partition, value FROM ev WHERE kind = 'final') h
  ON h.run_id = a.run_id AND h.partition = a.partition AND h.value = a.value;

-- producers: one row per producer id, epoch and partition, of what was sent, decided or stored
-- run_id BIGINT: number of the run
-- variant BIGINT: number of the variant
-- partition BIGINT: the partition
-- pid BIGINT: the producer id
-- epoch BIGINT: its epoch
-- batches BIGINT: batches that were sent with these numbers, each counted once
-- records BIGINT: how many records they have
-- accepted BIGINT: how often a leader began to store a batch
-- duplicates BIGINT: how often a leader found a batch in its log
-- parked BIGINT: how often a leader let a batch wait for a copy in flight
-- gaps BIGINT: how often a leader lacked a batch before one
-- refused BIGINT: how often a leader refused a batch for another reason
-- stored BIGINT: records in the canonical log
-- copies BIGINT: how many of these are second and further copies
SELECT run_id, MAX(variant) AS variant, partition, pid, epoch, SUM(batches) AS batches,
  SUM(records) AS records, SUM(accepted) AS accepted, SUM(duplicates) AS duplicates,
  SUM(parked) AS parked, SUM(gaps) AS gaps, SUM(refused) AS refused, SUM(stored) AS stored,
  SUM(copies) AS copies
FROM (
  SELECT run_id, variant, partition, pid, epoch, COUNT(DISTINCT seq) AS batches,
    SUM(records) AS records, 0 AS accepted, 0 AS duplicates, 0 AS parked, 0 AS gaps, 0 AS refused,
    0 AS stored, 0 AS copies
  FROM (
    SELECT run_id, variant, partition, pid, epoch, seq,
      MAX((seq_last - seq + 2147483648) % 2147483648 + 1) AS records
    FROM ev
    WHERE kind = 'send' AND pid >= 0
    GROUP BY run_id, variant, partition, pid, epoch, seq
  ) sent
  GROUP BY run_id, variant, partition, pid, epoch
  UNION ALL
  SELECT run_id, variant, partition, pid, epoch, 0, 0,
    SUM(CASE WHEN code = 'accept' THEN 1 ELSE 0 END),
    SUM(CASE WHEN code = 'duplicate' THEN 1 ELSE 0 END),
    SUM(CASE WHEN code = 'park' THEN 1 ELSE 0 END), SUM(CASE WHEN code = 'gap' THEN 1 ELSE 0 END),
    SUM(CASE WHEN code IN ('accept', 'duplicate', 'park', 'gap') THEN 0 ELSE 1 END), 0, 0
  FROM ev
  WHERE kind = 'decide' AND node > 0 AND pid >= 0
  GROUP BY run_id, variant, partition, pid, epoch
  UNION ALL
  SELECT c.run_id, h.variant, c.partition, c.pid, c.epoch, 0, 0, 0, 0, 0, 0, 0, COUNT(*),
    COUNT(*) - COUNT(DISTINCT c.value)
  FROM canon c
  JOIN (SELECT run_id, MAX(variant) AS variant FROM ev GROUP BY run_id) h ON h.run_id = c.run_id
  WHERE c.pid >= 0 AND c.epoch >= 0
  GROUP BY c.run_id, h.variant, c.partition, c.pid, c.epoch
) w
GROUP BY run_id, partition, pid, epoch;

-- answers: one row per answer of a broker to a batch of an idempotent producer
-- run_id BIGINT: number of the run
-- variant BIGINT: number of the variant
-- seed BIGINT: the seed of the run
-- client BIGINT: number of the producer
-- partition BIGINT: the batch's partition
-- op BIGINT: the batch's first record
-- nth BIGINT: its place among the answers to that batch, from 1
-- node BIGINT: the node that answered
-- t_us BIGINT: when the answer was made; a client may never hear it
-- code VARCHAR: Kafka's name of the error, or NONE
-- decided VARCHAR: what this leader had last decided about the batch: accept, duplicate, park, or
-- why it is refused; NULL if it had decided nothing
SELECT a.run_id, a.variant, a.seed, s.client, s.partition, s.op,
  ROW_NUMBER() OVER (PARTITION BY a.run_id, s.client, s.partition, s.op ORDER BY a.eid) AS nth,
  a.node, a.t_us, a.code, d.code AS decided
FROM (
  SELECT run_id, variant, seed, eid, kind, node, t_us, code,
    MAX(CASE WHEN kind = 'send' THEN eid END) OVER (
      PARTITION BY run_id, partition, client, pid, epoch, seq ORDER BY eid
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS sent,
    MAX(CASE WHEN kind = 'decide' THEN eid END) OVER (
      PARTITION BY run_id, partition, node, inc, pid, epoch, seq ORDER BY eid
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS decided
  FROM ev
  WHERE kind IN ('send', 'decide', 'answer') AND pid >= 0 AND node > 0
) a
JOIN ev s ON s.run_id = a.run_id AND s.eid = a.sent
LEFT JOIN ev d ON d.run_id = a.run_id AND d.eid = a.decided
WHERE a.kind = 'answer';

-- python_verdicts: one row per judged run and invariant that the simulator's own judge found broken
-- run_id BIGINT: number of the run
-- variant BIGINT: number of the variant
-- invariant VARCHAR: its id
SELECT run_id, variant, code AS invariant
FROM bronze
WHERE kind = 'verdict';

-- reached: one row per point of coverage and variant, of the runs of one batch of waves
-- run_id BIGINT: number of the first run that reached it
-- variant BIGINT: number of the variant
-- seed BIGINT: the seed of that run
-- point VARCHAR: a predicate, or an abstract state
-- runs BIGINT: how many runs reached it
SELECT MIN(run_id) AS run_id, variant, MIN(seed) AS seed, code AS point,
  COUNT(DISTINCT run_id) AS runs
FROM bronze
WHERE kind = 'reached'
GROUP BY variant, code;
