-- Judging: what the statements of the invariants find in `ev`, the histories of the judged runs.
-- Table `found` has run, invariant and how often (`sim/studies/judging.py`).

-- verdicts: one row per judged run and invariant that its SQL statement finds broken
-- run_id BIGINT: number of the run
-- variant BIGINT: number of the variant
-- invariant VARCHAR: its id
-- n BIGINT: how often it does not hold
SELECT f.run_id, h.variant, f.invariant, f.n
FROM found f
JOIN (SELECT run_id, MAX(variant) AS variant FROM ev GROUP BY run_id) h ON h.run_id = f.run_id;
