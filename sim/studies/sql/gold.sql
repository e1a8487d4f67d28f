-- Gold: a few rows per variant, over the silver tables of all waves. Shares have Wilson's interval
-- of 95 % (z = 1.96), from low to high. If none was hit, or all were, the interval is one-sided, by
-- Clopper and Pearson, as in sentences (sim/sweeps/bounds.py). Percentiles are nearest ranks: the
-- smallest value that so many percent do not exceed. `pairs` has the pairs of variants that differ
-- only in their profile. A run that broke has no figures, so it counts in no table here.

-- verdicts: one row per variant and invariant that is broken in any of its runs. Every run that is
-- not ok is judged, so the share is one of all runs
-- variant BIGINT: number of the variant
-- invariant VARCHAR: its id
-- runs BIGINT: runs of the variant that came to an end
-- judged BIGINT: how many of these were judged in SQL
-- broken BIGINT: in how many of them the invariant does not hold
-- share DOUBLE: broken / runs
-- low DOUBLE: lower end of its interval
-- high DOUBLE: upper end
SELECT variant, invariant, runs, judged, broken, 1E0 * broken / runs AS share,
  CASE WHEN broken = 0 THEN 0E0
    WHEN broken = runs THEN POWER(0.05E0, 1E0 / runs)
    ELSE (broken + 1.9208E0) / (runs + 3.8416E0)
    - 1.96E0 * SQRT(1E0 * broken * (runs - broken) / runs + 0.9604E0) / (runs + 3.8416E0)
  END AS low,
  CASE WHEN broken = runs THEN 1E0
    WHEN broken = 0 THEN 1E0 - POWER(0.05E0, 1E0 / runs)
    ELSE (broken + 1.9208E0) / (runs + 3.8416E0)
    + 1.96E0 * SQRT(1E0 * broken * (runs - broken) / runs + 0.9604E0) / (runs + 3.8416E0)
  END AS high
FROM (
  SELECT v.variant, v.invariant, r.runs, r.judged, v.broken
  FROM (
    SELECT variant, invariant, COUNT(*) AS broken FROM verdicts GROUP BY variant, invariant
  ) v
  JOIN (
    SELECT variant, COUNT(*) AS runs, SUM(CASE WHEN judged THEN 1 ELSE 0 END) AS judged
    FROM runs
    WHERE broke = 0
    GROUP BY variant
  ) r ON r.variant = v.variant
) counted;

-- losses: one row per variant and setting of acks, of acknowledged records, without the runs that
-- ended before the logs were read
-- variant BIGINT: number of the variant
-- acks BIGINT: what the producer asked for: 0, 1, or -1 for all
-- acknowledged BIGINT: how many were acknowledged
-- lost BIGINT: how many of them no consumer can ever read (promise-K4)
-- share DOUBLE: lost / acknowledged; NULL if all runs are left out, as are low and high
-- low DOUBLE: lower end of its interval, as if records were lost independently
-- high DOUBLE: upper end
-- hit BIGINT: in how many runs a record was lost
-- left_out BIGINT: runs with acknowledged records that ended before the logs were read; no other
-- column counts them
-- took_truncate BIGINT: lost when the log of a replaced leader was truncated
-- took_crash BIGINT: lost in a crash, not synced
-- took_refused BIGINT: refused, but nobody heard of it (acks 0)
-- took_never BIGINT: never reached a log
-- took_undecided BIGINT: in a log, not committed when the run ended
-- took_unknown BIGINT: lost without an explanation
SELECT variant, acks, acknowledged, lost, 1E0 * lost / NULLIF(acknowledged, 0) AS share,
  CASE WHEN acknowledged = 0 THEN NULL WHEN lost = 0 THEN 0E0
    WHEN lost = acknowledged THEN POWER(0.05E0, 1E0 / acknowledged)
    ELSE (lost + 1.9208E0) / (acknowledged + 3.8416E0)
    - 1.96E0 * SQRT(1E0 * lost * (acknowledged - lost) / acknowledged + 0.9604E0)
    / (acknowledged + 3.8416E0)
  END AS low,
  CASE WHEN acknowledged = 0 THEN NULL WHEN lost = acknowledged THEN 1E0
    WHEN lost = 0 THEN 1E0 - POWER(0.05E0, 1E0 / acknowledged)
    ELSE (lost + 1.9208E0) / (acknowledged + 3.8416E0)
    + 1.96E0 * SQRT(1E0 * lost * (acknowledged - lost) / acknowledged + 0.9604E0)
    / (acknowledged + 3.8416E0)
  END AS high,
  hit, left_out, took_truncate, took_crash, took_refused, took_never, took_undecided, took_unknown
FROM (
  SELECT variant, acks, COUNT(lost) AS acknowledged, COALESCE(SUM(lost), 0) AS lost,
    COUNT(DISTINCT CASE WHEN lost = 1 THEN run_id END) AS hit,
    COUNT(DISTINCT CASE WHEN lost IS NULL THEN run_id END) AS left_out,
    SUM(CASE WHEN took = 'truncate' THEN 1 ELSE 0 END) AS took_truncate,
    SUM(CASE WHEN took = 'crash' THEN 1 ELSE 0 END) AS took_crash,
    SUM(CASE WHEN took = 'refused' THEN 1 ELSE 0 END) AS took_refused,
    SUM(CASE WHEN took = 'never arrived' THEN 1 ELSE 0 END) AS took_never,
    SUM(CASE WHEN took = 'undecided' THEN 1 ELSE 0 END) AS took_undecided,
    SUM(CASE WHEN took = 'unknown' THEN 1 ELSE 0 END) AS took_unknown
  FROM acked
  GROUP BY variant, acks
) counted;

-- view phases: how often a phase of a failover took so long; NULL: it never ended, because no
-- record that had waited was acknowledged, and some were given up
SELECT variant, phase, us, COUNT(*) AS times
FROM (
  SELECT variant, 'detection' AS phase, detection_us AS us, 0 AS in_vain FROM failovers
  UNION ALL
  SELECT variant, 'election' AS phase, election_us AS us, 0 AS in_vain FROM failovers
  UNION ALL
  SELECT variant, 'sync' AS phase, sync_us AS us, 0 AS in_vain FROM failovers
  UNION ALL
  SELECT variant, 'retry' AS phase, retry_us AS us,
    CASE WHEN ok_us IS NULL AND gave_up > 0 THEN 1 ELSE 0 END AS in_vain
  FROM failovers
  UNION ALL
  SELECT variant, 'total' AS phase, total_us AS us,
    CASE WHEN ok_us IS NULL AND gave_up > 0 THEN 1 ELSE 0 END AS in_vain
  FROM failovers
) each_phase
WHERE us IS NOT NULL OR in_vain = 1
GROUP BY variant, phase, us;

-- failover: one row per variant and phase, of the failovers in which the phase is known. An outage
-- of several elections counts as one failover
-- variant BIGINT: number of the variant
-- phase VARCHAR: detection, election, sync, retry or total
-- n BIGINT: how many failovers
-- gave_up BIGINT: for retry and total: how many more failovers there were in which no record that
-- had waited was acknowledged, and some were given up
-- p50_us BIGINT: the median of its length; NULL if n is 0
-- p99_us BIGINT: the 99th percentile
-- max_us BIGINT: the longest
SELECT variant, phase, MAX(n) AS n, SUM(CASE WHEN us IS NULL THEN times ELSE 0 END) AS gave_up,
  MIN(CASE WHEN up_to * 100 >= n * 50 THEN us END) AS p50_us,
  MIN(CASE WHEN up_to * 100 >= n * 99 THEN us END) AS p99_us, MAX(us) AS max_us
FROM (
  SELECT variant, phase, us, times,
    SUM(CASE WHEN us IS NULL THEN 0 ELSE times END) OVER (
      PARTITION BY variant, phase ORDER BY us ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS up_to,
    SUM(CASE WHEN us IS NULL THEN 0 ELSE times END) OVER (PARTITION BY variant, phase) AS n
  FROM phases
) w
GROUP BY variant, phase;

-- requests: one row per variant, of batches that producers sent
-- variant BIGINT: number of the variant
-- requests BIGINT: how many batches
-- attempts BIGINT: how often they were sent
-- amplification DOUBLE: attempts / requests
-- records BIGINT: how many records they had
-- acknowledged BIGINT: batches that were acknowledged
-- failed BIGINT: batches that were certainly not stored
-- unknown BIGINT: batches whose outcome is not known
-- parked BIGINT: how often one waited at a leader for a copy in flight
-- duplicates BIGINT: how often a leader found one in its log
-- gaps BIGINT: how often a leader lacked the batch before one
-- p50_us BIGINT: median of the time from when one was first sent to its acknowledgement; NULL if
-- there is none
-- p99_us BIGINT: its 99th percentile
-- max_us BIGINT: its maximum
SELECT c.variant, c.requests, c.attempts, 1E0 * c.attempts / c.requests AS amplification, c.records,
  c.acknowledged, c.failed, c.unknown, c.parked, c.duplicates, c.gaps, l.p50_us, l.p99_us, l.max_us
FROM (
  SELECT variant, COUNT(*) AS requests, SUM(attempts) AS attempts, SUM(records) AS records,
    SUM(CASE WHEN outcome = 'ok' THEN 1 ELSE 0 END) AS acknowledged,
    SUM(CASE WHEN outcome = 'fail' THEN 1 ELSE 0 END) AS failed,
    SUM(CASE WHEN outcome IN ('info', 'open') THEN 1 ELSE 0 END) AS unknown,
    SUM(parked) AS parked, SUM(duplicates) AS duplicates, SUM(gaps) AS gaps
  FROM requests
  GROUP BY variant
) c
LEFT JOIN (
  SELECT variant, MIN(CASE WHEN up_to * 100 >= n * 50 THEN us END) AS p50_us,
    MIN(CASE WHEN up_to * 100 >= n * 99 THEN us END) AS p99_us, MAX(us) AS max_us
  FROM (
    SELECT variant, us,
      SUM(times) OVER (
        PARTITION BY variant ORDER BY us ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS up_to,
      SUM(times) OVER (PARTITION BY variant) AS n
    FROM (
      SELECT variant, latency_us AS us, COUNT(*) AS times
      FROM requests
      WHERE latency_us IS NOT NULL
      GROUP BY variant, latency_us
    ) t
  ) w
  GROUP BY variant
) l ON l.variant = c.variant;

-- kills: one row per variant: in how many runs an invariant, or the broker itself, found something
-- variant BIGINT: number of the variant
-- runs BIGINT: how many runs came to an end
-- failed BIGINT: how many of these have the verdict failed
-- share DOUBLE: failed / runs
-- low DOUBLE: lower end of its interval
-- high DOUBLE: upper end
-- seeds_to_kill BIGINT: how many seeds were run, in their order, up to the first that failed; NULL
-- if none did
SELECT variant, runs, failed, 1E0 * failed / runs AS share,
  CASE WHEN failed = 0 THEN 0E0
    WHEN failed = runs THEN POWER(0.05E0, 1E0 / runs)
    ELSE (failed + 1.9208E0) / (runs + 3.8416E0)
    - 1.96E0 * SQRT(1E0 * failed * (runs - failed) / runs + 0.9604E0) / (runs + 3.8416E0)
  END AS low,
  CASE WHEN failed = runs THEN 1E0
    WHEN failed = 0 THEN 1E0 - POWER(0.05E0, 1E0 / runs)
    ELSE (failed + 1.9208E0) / (runs + 3.8416E0)
    + 1.96E0 * SQRT(1E0 * failed * (runs - failed) / runs + 0.9604E0) / (runs + 3.8416E0)
  END AS high,
  first_failed - first_seed + 1 AS seeds_to_kill
FROM (
  SELECT variant, SUM(CASE WHEN broke = 0 THEN 1 ELSE 0 END) AS runs,
    SUM(CASE WHEN verdict = 'failed' THEN 1 ELSE 0 END) AS failed, MIN(seed) AS first_seed,
    MIN(CASE WHEN verdict = 'failed' THEN seed END) AS first_failed
  FROM runs
  GROUP BY variant
) counted
WHERE runs > 0;

-- coverage: one row per variant and seed that reached a point which no lower seed had reached, and
-- one for the last seed: how the number of known points grows
-- variant BIGINT: number of the variant
-- seeds BIGINT: how many seeds had been run, including this one
-- known BIGINT: how many points they had reached
SELECT variant, seeds, MAX(known) AS known
FROM (
  SELECT n.variant, n.seed - f.first_seed + 1 AS seeds,
    SUM(n.points) OVER (
      PARTITION BY n.variant ORDER BY n.seed ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS known
  FROM (
    SELECT variant, seed, SUM(points) AS points
    FROM (
      SELECT variant, seed, COUNT(*) AS points
      FROM (SELECT variant, point, MIN(seed) AS seed FROM reached GROUP BY variant, point) new_ones
      GROUP BY variant, seed
      UNION ALL
      SELECT r.variant, MAX(r.seed) AS seed, 0 AS points
      FROM runs r
      JOIN (SELECT DISTINCT variant FROM reached) asked ON asked.variant = r.variant
      GROUP BY r.variant
    ) steps
    GROUP BY variant, seed
  ) n
  JOIN (SELECT variant, MIN(seed) AS first_seed FROM runs GROUP BY variant) f
    ON f.variant = n.variant
) w
GROUP BY variant, seeds;

-- throughput: one row per variant with an acknowledged record
-- variant BIGINT: number of the variant
-- acknowledged BIGINT: records that were acknowledged
-- active_us BIGINT: the time from the first record handed over to the last acknowledgement, summed
-- over all runs
-- per_second DOUBLE: records acknowledged per second of that time; NULL if that is 0
SELECT variant, acknowledged, active_us, 1E6 * acknowledged / NULLIF(active_us, 0) AS per_second
FROM (
  SELECT variant, SUM(acknowledged) AS acknowledged, SUM(last_us - first_us) AS active_us
  FROM runs
  WHERE last_us IS NOT NULL AND first_us IS NOT NULL
  GROUP BY variant
) counted;

-- view ended: seeds with which both variants of a pair came to an end
SELECT p.variant, p.other, r.seed
FROM pairs p
JOIN runs r ON r.variant = p.variant AND r.broke = 0
JOIN runs o ON o.variant = p.other AND o.broke = 0 AND o.seed = r.seed;

-- view compared: answers that two variants of a pair gave to the same batch with the same seed,
-- including those that only one of them gave
SELECT variant, other, seed, client, partition, op, nth, at_us, answer, decided, other_answer,
  other_decided,
  CASE WHEN COALESCE(answer, '') <> COALESCE(other_answer, '') THEN 1 ELSE 0 END AS answers_differ,
  CASE WHEN COALESCE(decided, '') <> COALESCE(other_decided, '') THEN 1 ELSE 0
  END AS decisions_differ
FROM (
  SELECT variant, other, seed, client, partition, op, nth, MIN(t_us) AS at_us,
    MAX(CASE WHEN side = 0 THEN code END) AS answer,
    MAX(CASE WHEN side = 0 THEN decided END) AS decided,
    MAX(CASE WHEN side = 1 THEN code END) AS other_answer,
    MAX(CASE WHEN side = 1 THEN decided END) AS other_decided
  FROM (
    SELECT e.variant, e.other, 0 AS side, a.seed, a.client, a.partition, a.op, a.nth, a.t_us,
      a.code, a.decided
    FROM ended e
    JOIN answers a ON a.variant = e.variant AND a.seed = e.seed
    UNION ALL
    SELECT e.variant, e.other, 1 AS side, a.seed, a.client, a.partition, a.op, a.nth, a.t_us,
      a.code, a.decided
    FROM ended e
    JOIN answers a ON a.variant = e.other AND a.seed = e.seed
  ) both_sides
  GROUP BY variant, other, seed, client, partition, op, nth
) side_by_side;

-- differences: one row per pair of variants that differ only in their profile, and per kind of
-- difference. For the same seed, the same batch (by client and first record) and the same place
-- among its answers, the answer or the decision differs, or only one of them gave an answer
-- variant BIGINT: number of the first variant
-- other BIGINT: number of the second variant
-- answer VARCHAR: what the first answered: Kafka's name of the error, or NONE; NULL: nothing
-- decided VARCHAR: what the first had decided: accept, duplicate, park, or why it refused; NULL:
-- nothing
-- other_answer VARCHAR: what the second answered
-- other_decided VARCHAR: what the second had decided
-- times BIGINT: how often
-- seeds BIGINT: with how many seeds
-- asked BIGINT: answers of the pair that were compared, including equal ones: two answers that were
-- compared count once, an answer that only one gave counts once
-- share DOUBLE: times / asked
SELECT c.variant, c.other, c.answer, c.decided, c.other_answer, c.other_decided, COUNT(*) AS times,
  COUNT(DISTINCT c.seed) AS seeds, MAX(a.asked) AS asked, 1E0 * COUNT(*) / MAX(a.asked) AS share
FROM compared c
JOIN (SELECT variant, other, COUNT(*) AS asked FROM compared GROUP BY variant, other) a
  ON a.variant = c.variant AND a.other = c.other
WHERE c.answers_differ = 1 OR c.decisions_differ = 1
GROUP BY c.variant, c.other, c.answer, c.decided, c.other_answer, c.other_decided;

-- partings: one row per pair of variants that differ only in their profile, and seed: how many
-- answers were compared, as in table differences, and the first one that differs
-- variant BIGINT: number of the first variant
-- other BIGINT: number of the second variant
-- seed BIGINT: the seed of both runs
-- asked BIGINT: answers that were compared, including equal ones
-- differing BIGINT: how many of these differ in the answer or in the decision
-- answers BIGINT: how many of them differ in the answer, or were given by only one
-- decisions BIGINT: how many of them differ in the decision, or were decided by only one
-- alone BIGINT: answers that only one of them gave
-- at_us BIGINT: when the first one that differs was given, by whichever variant was first; this
-- column and all that follow are NULL if none differs
-- partition BIGINT: partition of that batch
-- answer VARCHAR: what the first variant answered; NULL: nothing
-- decided VARCHAR: what the first variant had decided
-- other_answer VARCHAR: what the second variant answered
-- other_decided VARCHAR: what the second variant had decided
SELECT a.variant, a.other, a.seed, a.asked, a.differing, a.answers, a.decisions, a.alone, f.at_us,
  f.partition, f.answer, f.decided, f.other_answer, f.other_decided
FROM (
  SELECT variant, other, seed, COUNT(*) AS asked,
    SUM(GREATEST(answers_differ, decisions_differ)) AS differing, SUM(answers_differ) AS answers,
    SUM(decisions_differ) AS decisions,
    SUM(CASE WHEN answer IS NULL OR other_answer IS NULL THEN 1 ELSE 0 END) AS alone
  FROM compared
  GROUP BY variant, other, seed
) a
LEFT JOIN (
  SELECT variant, other, seed, at_us, partition, answer, decided, other_answer, other_decided,
    ROW_NUMBER() OVER (
      PARTITION BY variant, other, seed ORDER BY at_us, client, partition, op, nth
    ) AS place
  FROM compared
  WHERE answers_differ = 1 OR decisions_differ = 1
) f ON f.variant = a.variant AND f.other = a.other AND f.seed = a.seed AND f.place = 1;
