"""What follows for all runs after some were observed: how often something happens at most.

That nothing was found in n runs does not mean that there is nothing; it means that it is rare. The
bound is Clopper's and Pearson's, one-sided at 95 %: the largest share with which so few hits or
fewer would still be seen once in twenty times. Without any hit it is 1 - 0.05^(1/n), about 3/n
("rule of three").

An estimate between none and all has Wilson's two-sided interval of 95 %, for tables and charts. If
no run was hit, or all were, the interval ends at the one-sided bound, so that a table and a
sentence about the same runs agree.

Only independent units may be counted: runs, or seeds if each is run with several variants. Records
of one run share its faults, so their number gives no bound: a run that loses one usually loses
many.

What is counted completely needs no bound. That a demo's run lost 0 of its records is no estimate,
because each of them was looked up in every log.
"""

from __future__ import annotations

from math import ceil, exp, floor, lgamma, log, log1p, sqrt

RISK = 0.05
"""How often the bound may be too low."""
_Z = 1.96
_SMALL = 0.1
"""Shares from here on are written in hundredths, smaller ones as one in so many."""
_HALVINGS = 60


def upper_bound(hits: int, runs: int) -> float:
    """The largest share of all runs that may be hit, if `hits` of `runs` were.

    >>> round(upper_bound(0, 1_000), 6), round(upper_bound(1, 10), 4), upper_bound(3, 3)
    (0.002991, 0.3942, 1.0)
    """
    if hits >= runs:
        return 1.0
    if hits == 0:
        return float(-(RISK ** (1 / runs)) + 1)
    low, high = hits / runs, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _at_most(hits, runs, middle) > RISK else (low, middle)
    return high


def interval(hits: int, runs: int) -> tuple[float, float, float]:
    """A share, and the ends of its 95 % interval.

    >>> [round(each, 3) for each in interval(5, 100)], [round(each, 3) for each in interval(0, 100)]
    ([0.05, 0.022, 0.112], [0.0, 0.0, 0.03])
    """
    if not runs:
        return 0.0, 0.0, 1.0
    share = hits / runs
    spread = _Z * sqrt(share * (1 - share) / runs + _Z * _Z / (4 * runs * runs))
    middle, scale = share + _Z * _Z / (2 * runs), 1 + _Z * _Z / runs
    low, high = (middle - spread) / scale, (middle + spread) / scale
    if hits == 0:
        low, high = 0.0, upper_bound(0, runs)
    if hits == runs:
        low, high = 1 - upper_bound(0, runs), 1.0
    return share, low, high


def bounded(runs: int, hits: int = 0) -> str:
    """The bound in words, rounded up.

    >>> bounded(1_000), bounded(20), bounded(1_000, 3)
    ('with 95 % confidence at most 1 in 334', 'with 95 % confidence at most 14 in 100', \
'with 95 % confidence at most 1 in 129')
    """
    share = upper_bound(hits, runs)
    if share >= _SMALL:
        told = f"{ceil(round(100 * share, 9))} in 100"
    else:
        told = f"1 in {floor(1 / share):,}"
    return f"with 95 % confidence at most {told}"


def _at_most(hits: int, runs: int, share: float) -> float:
    """The probability of so many hits or fewer."""
    if share >= 1:
        return 0.0
    return sum(
        exp(
            lgamma(runs + 1)
            - lgamma(k + 1)
            - lgamma(runs - k + 1)
            + k * log(share)
            + (runs - k) * log1p(-share)
        )
        for k in range(hits + 1)
    )
