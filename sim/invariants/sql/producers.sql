-- What idempotence promises of the canonical log.

-- sim-I02
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT run_id
  FROM canon WHERE pid >= 0 AND epoch >= 0
  GROUP BY run_id, partition, pid, epoch, seq HAVING COUNT(*) > 1
  UNION ALL
  SELECT run_id
  FROM canon WHERE pid >= 0 AND epoch >= 0
  GROUP BY run_id, partition, pid, epoch, value HAVING COUNT(*) > 1
) d
GROUP BY run_id;

-- sim-I03
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT run_id, op,
    MAX(op) OVER (
      PARTITION BY run_id, partition, client, pid ORDER BY off
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS newest
  FROM (
    SELECT run_id, partition, client, pid, epoch, op, off,
      ROW_NUMBER() OVER (PARTITION BY run_id, partition, value ORDER BY off) AS place
    FROM canon
  ) k
  WHERE place = 1 AND op IS NOT NULL AND pid >= 0 AND epoch >= 0
) w
WHERE op < newest
GROUP BY run_id;

-- sim-I04
SELECT run_id, COUNT(*) AS n
FROM (
  SELECT run_id, place,
    MAX(place) OVER (
      PARTITION BY run_id, partition, pid, epoch ORDER BY off
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS furthest
  FROM (
    SELECT run_id, partition, pid, epoch, off,
      SUM(CASE WHEN ahead < 1073741824 THEN ahead ELSE ahead - 2147483648 END) OVER (
        PARTITION BY run_id, partition, pid, epoch ORDER BY off
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS place
    FROM (
      SELECT run_id, partition, pid, epoch, off,
        (seq - LAG(seq, 1, seq - 1) OVER (
          PARTITION BY run_id, partition, pid, epoch ORDER BY off
        ) + 2147483648) % 2147483648 AS ahead
      FROM canon
      WHERE pid >= 0 AND epoch >= 0
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
      PARTITION BY run_id, partition, pid ORDER BY off
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS newest
  FROM canon
  WHERE pid >= 0 AND epoch >= 0
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
    SELECT run_id, client, pid, epoch, MIN(eid) AS eid
    FROM ev WHERE kind = 'error' AND code = 'OUT_OF_ORDER_SEQUENCE_NUMBER'
    GROUP BY run_id, client, pid, epoch
  ) refused ON refused.run_id = d.run_id AND refused.client = d.client
    AND refused.pid = d.old_pid AND refused.epoch = d.old_epoch
  LEFT JOIN ev given_up ON given_up.run_id = d.run_id AND given_up.kind = 'info'
    AND given_up.client = d.client AND given_up.eid > began.eid AND given_up.eid < anew.eid
  LEFT JOIN ev forgotten ON forgotten.run_id = d.run_id AND forgotten.kind = 'expire'
    AND forgotten.partition = d.partition AND forgotten.pid = d.old_pid
  LEFT JOIN canon later ON later.run_id = d.run_id AND later.partition = d.partition
    AND later.pid = d.old_pid AND later.epoch = d.old_epoch AND later.off > d.old_off
    AND later.chain <> d.old_chain
  WHERE d.pid >= 0 AND d.epoch >= 0 AND d.old_pid >= 0 AND d.old_epoch >= 0
    AND (d.pid <> d.old_pid OR d.epoch <> d.old_epoch)
    AND refused.eid < anew.eid AND given_up.eid IS NULL AND forgotten.eid IS NULL
  GROUP BY d.run_id, d.eid
  HAVING COUNT(DISTINCT later.chain) < 5
) copies
GROUP BY run_id;
