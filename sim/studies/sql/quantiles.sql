-- Quantiles: what is the same in every study, and for which SQL has no function.

-- student_t: one row per number of degrees of freedom, from 1 to 1,000: how far the 95 % interval
-- of a mean reaches on each side, in standard errors. The mean of n values has n - 1 degrees: join
-- on degrees = LEAST(n - 1, 1000), with LEFT JOIN, because a single value has no interval and no
-- row here
-- degrees BIGINT: the number of degrees of freedom
-- t DOUBLE: Student's t at 97.5 %, correct to the fifth digit; from 10 degrees on, by the expansion
-- of Cornish and Fisher
SELECT CAST(degrees AS BIGINT) AS degrees,
  CASE degrees WHEN 1 THEN 12.706205E0 WHEN 2 THEN 4.302653E0 WHEN 3 THEN 3.182446E0
    WHEN 4 THEN 2.776445E0 WHEN 5 THEN 2.570582E0 WHEN 6 THEN 2.446912E0 WHEN 7 THEN 2.364624E0
    WHEN 8 THEN 2.306004E0 WHEN 9 THEN 2.262157E0
    ELSE 1.959963985E0 + (2.372271230E0 + (2.822498616E0 + (2.555849680E0 + 1.589534053E0 / degrees)
      / degrees) / degrees) / degrees
  END AS t
FROM (
  SELECT 1 + a.digit + 10 * b.digit + 100 * c.digit AS degrees
  FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS a(digit)
  CROSS JOIN (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS b(digit)
  CROSS JOIN (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS c(digit)
) counted;
