"""Made-up findings for tests of the page: every part of it, with text that must be escaped.

Rows look like those of SQL. Figures rise with their place, so that a test can distinguish one from
another.
"""

from typing import Any

from ottla.sim.studies.findings import Findings, Stage, Worst, chart_of, table_of

BITING = "<script>alert('x')</script> & \"so on\""
"""Text that must be escaped wherever it stands."""
PROMISES = ("0", "1", "all, minimum 1", "all, minimum 2", "all, minimum 3")
FAILURES = (
    "a follower is killed",
    "the leader is killed",
    "the leader loses power",
    "a follower lags, the leader loses power",
    "the leader is cut off",
    "the leader is cut off and loses power",
    "all lose power",
)


def losses() -> list[dict[str, Any]]:
    """A row per promise and failure."""
    return [
        {
            "acks": promise,
            "what_happens": failure,
            "acknowledged": 1_000 * (7 - place),
            "lost": place * 11 if promise in {"0", "1"} else 0,
            "lost_share": place * 0.011,
            "lost_share_low": place * 0.009,
            "lost_share_high": place * 0.0131,
            "p99_us": 12_345 * (place + 1),
        }
        for promise in PROMISES
        for place, failure in enumerate(FAILURES)
    ]


def bars() -> list[dict[str, Any]]:
    """Lost records with their intervals, few names."""
    return [
        {"series": flush, "x": promise, "y": place * 7.5, "low": place * 6.0, "high": place * 9.0}
        for flush in ("each-turn", "off")
        for place, promise in enumerate(PROMISES)
    ]


def many_bars() -> list[dict[str, Any]]:
    """A share per mutant: more names than can stand side by side."""
    return [
        {
            "series": "killed",
            "x": f"M{n:02} look-up of duplicates",
            "y": n * 3,
            "low": n,
            "high": n * 3 + 5,
        }
        for n in range(1, 34)
    ]


def lines() -> list[dict[str, Any]]:
    """Latencies over round trips that lie far apart."""
    return [
        {"series": name, "x": x, "y": x * factor, "low": x * factor * 0.8, "high": x * factor * 1.3}
        for name, factor in (("p50", 2.0), ("p99", 9.0))
        for x in (0.4, 2, 20, 100)
    ]


def growth() -> list[dict[str, Any]]:
    """So many points that their intervals are a band."""
    return [
        {"series": "states", "x": x, "y": 100 * x**0.4, "low": 90 * x**0.4, "high": 115 * x**0.4}
        for x in range(1, 40)
    ]


CHARTS = (
    chart_of("Lost records", "bars", ("acks", "records"), bars()),
    chart_of("Killed", "bars", ("mutant", "percent of seeds"), many_bars()),
    chart_of("Latency", "lines", ("round trip, ms", "ms"), lines()),
    chart_of("Growth", "lines", ("seeds", "states"), growth()),
    chart_of("Nothing", "lines", ("x", "y"), []),
)


STAGES = (
    Stage(
        "sweep",
        93.4,
        4_900_000,
        31_000_000,
        "duckdb 1.4, --jobs 2, at commit abcdef0123456789",
    ),
    Stage("silver", 12.0, 420_000, 4_000_000),
    Stage("judge", 8.1, 12, 4_000),
    Stage("gold", 1.0, 300, 20_000),
)


def findings(**changes: Any) -> Findings:
    """All of it."""
    told: dict[str, Any] = {
        "name": "made-up",
        "title": f"What nobody measured {BITING}",
        "question": f"How many acknowledged records can no consumer ever read? {BITING}",
        "answer": f"acks=all lost 0 of 123,456 acknowledged records, acks=1 lost 77. {BITING}",
        "text": f'name = "made-up"\n[grid]\nacks = [0, 1, -1]\n# {BITING}\n',
        "command": "ottla study run made-up --seeds 20 --out made-up",
        "seeds": 20,
        "first": 0,
        "variants": 35,
        "runs": 700,
        "judged": 650,
        "share": 0.05,
        "broke": 0,
        "verdicts": table_of(
            "verdicts",
            [{"invariant": "sim-I24", "judged": 650, "broken": 12, "broken_share": 12 / 650}],
        ),
        "tables": (
            table_of(f"Losses {BITING}", losses(), f"A note. {BITING}"),
            table_of("Empty", []),
        ),
        "charts": CHARTS,
        "worst": (
            Worst(
                17,
                3,
                f"acks=1, the leader loses power {BITING}",
                f"12 acknowledged records are lost {BITING}",
                "ottla sim run --seed 3 --set acks=1 --set 'faults=kill power'",
                "0123456789abcdef",
            ),
        ),
        "canary": "M06 and M03 noticed by sim-I09 and sim-I25",
        "versions": (
            ("ottla", "0.1"),
            ("report by", "duckdb 1.4, at commit abcdef0123456789"),
            ("python", "3.11.9"),
        ),
        "stages": STAGES,
    }
    return Findings(**{**told, **changes})
