"""What reports of very small studies say: of one seed, one run, one record, or nothing found.

Sentences are those of the studies that ship, filled from hand-made tables; a person who tries one
out begins with one seed, and reads them first.
"""

import pytest

import studies_findings as made_up
from ottla.report.study.page import page
from ottla.sim.studies.findings import table_of
from ottla.sim.studies.names import VARIANTS
from ottla.sim.studies.pairs import PAIRS, pairs_query
from ottla.sim.studies.sentences import answer, filled
from ottla.sim.studies.sheets import GOLD
from ottla.sim.studies.study import StudyError, catalogue, parse
from ottla.sim.studies.worst import DEFAULT
from studies_cases import make, put_silver, put_typed

PROFILES = ("reference", "reference-strict", "redpanda-5157")


def said(engine, name, silver, variants, pairs=()):
    """The sentence that a study which ships answers with, of these rows and variants."""
    types = {
        key: "BIGINT" if isinstance(value, int) else "VARCHAR" for key, value in variants[0].items()
    }
    put_typed(engine, VARIANTS, types, variants)
    put_silver(engine, {f"silver {table}": rows for table, rows in silver.items()})
    engine.make(PAIRS, pairs_query(pairs))
    study = parse(catalogue()[name])
    make(engine, GOLD, study.text)
    return answer(study.answer, engine.rows(study.answer.sql))


def run_of(number, variant=0, **others):
    return {"run_id": number, "variant": variant, "seed": number, "judged": True, "broke": 0} | {
        "verdict": "ok",
        **others,
    }


@pytest.mark.parametrize(
    ("text", "row", "told"),
    [
        ("{n} {n:seed|seeds}", {"n": 1}, "1 seed"),
        ("{n} {n:seed|seeds}", {"n": 0}, "0 seeds"),
        ("{n:,} {n:seed|seeds}", {"n": 1_200}, "1,200 seeds"),
        ("{n:seed|seeds}", {"n": None}, "seeds"),
        ("all{some: but {n:,} {n:run|runs}|}", {"some": True, "n": 1}, "all but 1 run"),
        ("all{some: but {n:,} {n:run|runs}|}", {"some": False, "n": 1}, "all"),
        ("{hit:bounded n}", {"hit": 3, "n": 20}, "with 95 % confidence at most 35 in 100"),
        ("{hit:bounded n}", {"hit": 3, "n": None}, "\N{EN DASH}"),
        ("{n:bounded}", {"n": 1_000}, "with 95 % confidence at most 1 in 334"),
        ("{us:duration}", {"us": 7_560_000_000}, "2.1 hours"),
        ("{us:duration}", {"us": 3_599_000_000}, "60.0 minutes"),
        ("{us:duration}", {"us": 11_280_000}, "11.3 seconds"),
        ("{us:duration}", {"us": None}, "\N{EN DASH}"),
    ],
)
def test_a_sentence_knows_one_from_many_and_spans_of_time(text, row, told):
    assert filled(text, row, "answer") == told


def test_words_are_no_span_of_time():
    with pytest.raises(StudyError, match=r"^answer\.text: "):
        filled("{us:duration}", {"us": "long"}, "answer")


def clean(engine, *failed):
    """Study `clean`, of so many runs, each failed or not."""
    runs = [
        run_of(
            seed,
            verdict="failed" if each else "ok",
            acknowledged=1,
            lost=0,
            copies=0,
            faults=1,
            elections=1,
            simulated_us=6_000_000,
        )
        for seed, each in enumerate(failed)
    ]
    return said(engine, "clean", {"runs": runs}, [{"variant": 0}])


@pytest.mark.slow
def test_clean_of_one_seed_says_how_little_it_claims(duck):
    assert clean(duck, False) == (
        "0 of 1 seed failed (with 95 % confidence at most 95 in 100 seeds fail). It lived through "
        "1 fault and 1 leadership in 6.0 seconds of simulated time; 0 of 1 acknowledged record was "
        "lost (in 0 of 1 run; with 95 % confidence at most 95 in 100 runs lose any), 0 stored "
        "twice (in 0 of them; with 95 % confidence at most 95 in 100 runs store any twice)."
    )
    assert clean(duck, True, True, True).startswith("3 of 3 seeds failed. They lived through 3 ")


@pytest.mark.slow
def test_clean_bounds_what_fails_as_all_other_pages_do(duck):
    """It had Wilson's interval, which ends elsewhere: of 0 of 19 at 17 in 100."""
    for seeds, bound in ((40, "1 in 13"), (19, "15 in 100")):
        assert clean(duck, *[False] * seeds).startswith(
            f"0 of {seeds} seeds failed (with 95 % confidence at most {bound} seeds fail). "
        )
    assert clean(duck, True, *[False] * 19).startswith(
        "1 of 20 seeds failed (with 95 % confidence at most 22 in 100 seeds fail). "
    )


def compared(engine, *others):
    """Study `compare-profiles`, of one seed and one answer; the variants that give another."""
    runs = [{**run_of(each, each), "seed": 0} for each, _ in enumerate(PROFILES)]
    answers = [
        {"run_id": each, "variant": each, "seed": 0, "client": 1, "partition": 0, "op": 0, "nth": 1}
        | {"t_us": 5, "code": "NONE", "decided": str(others.index(each)) if each in others else "-"}
        for each, _ in enumerate(PROFILES)
    ]
    named = [{"variant": number, "profile": each} for number, each in enumerate(PROFILES)]
    study = parse(catalogue()["compare-profiles"])
    silver = {"runs": runs if others != (None,) else [], "answers": answers}
    return said(engine, study.name, silver, named, study.variants)


@pytest.mark.slow
def test_profiles_that_answer_alike_are_not_ranked(duck):
    assert compared(duck) == (
        "With 1 seed no two profiles differ, neither in an answer nor in what the broker decided "
        "about a batch (with 95 % confidence at most 95 in 100 seeds tell any two apart): 3 "
        "answers were compared, pair by pair."
    )


@pytest.mark.slow
def test_pairs_that_tie_are_not_ranked(duck):
    assert compared(duck, 0, 1, 2) == (
        "Every pair of profiles differs in the same number of seeds: 1 of 1. The largest share of "
        "answers differs between reference and reference-strict: 100.00\u00a0% of 1 compared; 0 of "
        "the differing answers were given by only one of the two."
    )
    assert compared(duck, 1).startswith("Profiles reference and ")


def test_where_no_seed_can_be_compared_that_is_all(duck):
    assert compared(duck, None) == (
        "No seed came to an end under two profiles, so nothing is compared."
    )


def mutants(engine, seeds, killed):
    """Study `mutants`, of four mutants: of so many one seed is noticed."""
    runs = [
        {**run_of(seed * 4 + each, each), "seed": seed}
        | {"verdict": "failed" if each < killed and seed == 0 else "ok"}
        for seed in range(seeds)
        for each in range(4)
    ]
    named = [{"variant": each, "line": f"M0{each}"} for each in range(4)]
    return said(engine, "mutants", {"runs": runs}, named)


@pytest.mark.slow
def test_mutants_of_one_seed_have_no_seeds_to_a_kill(duck):
    assert mutants(duck, 1, 3) == (
        "3 of 4 mutants were killed with 1 seed each. Still alive: M03 (noticed in none of 1 seed: "
        "with 95 % confidence at most 95 in 100 seeds notice it)."
    )
    assert mutants(duck, 2, 4).endswith(" Still alive: none.")
    assert mutants(duck, 2, 2) == (
        "2 of 4 mutants were killed with 2 seeds each. Half of all mutants need 2.0 seeds or "
        "fewer for a kill, on average; the hardest that was killed needs 2. Still alive: 2, M02 "
        "among them (noticed in none of 2 seeds: with 95 % confidence at most 78 in 100 seeds "
        "notice it)."
    )


def test_where_most_mutants_live_half_of_them_have_no_seeds_to_a_kill(duck):
    assert mutants(duck, 2, 1) == (
        "1 of 4 mutants was killed with 2 seeds each. Still alive: 3, M01 among them (noticed "
        "in none of 2 seeds: with 95 % confidence at most 78 in 100 seeds notice it)."
    )


def failovers(engine, *spans_ms):
    """Study `failover`, of failovers that took so long."""
    rows = [
        {"run_id": 0, "variant": 0, "term": term, "detection_us": ms * 500, "total_us": ms * 1_000}
        for term, ms in enumerate(spans_ms)
    ]
    named = [{"variant": 0, "election_timeout_ms": 500}]
    return said(engine, "failover", {"runs": [run_of(0)], "failovers": rows}, named)


@pytest.mark.slow
def test_a_few_failovers_have_no_99_of_100(duck):
    head = "With an election timeout of 500 ms "
    rest = " ms; 50\u00a0% of all that time passed"
    assert failovers(duck, 80).startswith(f"{head}the one failover was over within 80{rest}")
    few = f"{head}half of 2 failovers were over within 80 ms and all within 90{rest}"
    assert failovers(duck, 80, 90).startswith(few)
    many = f"{head}half of 100 failovers were over within 50 ms and 99 of 100 within 99{rest}"
    assert failovers(duck, *range(1, 101)).startswith(many)


@pytest.mark.slow
def test_acks_that_lose_nothing_say_how_rare_a_loss_may_be(duck):
    named = [
        {"variant": number, "acks": acks, "flush": "each-turn", "failure": "all lose power"}
        for number, acks in enumerate((-1, 1, 0))
    ]
    runs = [
        run_of(
            3 * seed + variant,
            variant,
            seed=seed,
            acknowledged=60,
            lost=7 if variant == 2 else 0,
        )
        for seed in range(10)
        for variant in range(3)
    ]
    said_of = said(duck, "acks", {"runs": runs}, named)
    rare = "(in 0 of 10 seeds; with 95 % confidence at most 26 in 100 seeds lose any)"
    assert (
        f"acks=all lost 0 of 600 acknowledged records, with any minimum in sync {rare}; "
        f"acks=1 lost 0 of 600 {rare}, acks=0 70 of 600 (in each of 10 seeds)."
    ) in said_of


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lost", "power", "told"),
    [
        (
            0,
            0,
            "none (in 0 of 2 seeds; with 95 % confidence at most 78 in 100 seeds lose any).",
        ),
        (
            0,
            1,
            (
                "1 (in 1 of 2 seeds; with 95 % confidence at most 98 in 100 seeds lose any), all "
                "of them when all lost power at once."
            ),
        ),
        (2, 1, "3 (in each of 2 seeds), 1 of them when all lost power at once."),
    ],
)
def test_acks_that_lose_nothing_or_all_at_once_say_so(duck, lost, power, told):
    failures = ("the leader is killed", "all lose power")
    named = [
        {"variant": each, "acks": -1, "flush": "off", "failure": failure}
        for each, failure in enumerate(failures)
    ]
    counts = enumerate((lost, power))
    runs = [run_of(each, each, acknowledged=60, lost=count) for each, count in counts]
    assert said(duck, "acks", {"runs": runs}, named).endswith(f" acks=all lost {told}")


def worst(name, row):
    """What a study that ships says of a run that is among its worst."""
    asked = parse(catalogue()[name]).worst
    assert asked is not None
    return filled(asked.text, row, "worst")


def test_what_is_worst_is_told_of_one_record_and_of_one_seed(duck):
    row = {"gone": 1, "at_s": 2.0, "took": "the log was cut"}
    assert worst("acks", row) == (
        "1 acknowledged record is gone; it was acknowledged at 2.000 s, and was lost because "
        "the log was cut."
    )
    row = {"failed": 1, "runs": 1, "reason": "no"}
    assert worst("mutants", row) == "Noticed in 1 of 1 seed, as here: no"
    row = {"asked": 1, "other": "reference", "differing": 1, "alone": 1, "at_s": 0.001}
    assert worst("compare-profiles", row).startswith(
        "Compared with profile reference under the same seed, 1 of 1 answer differs, in the "
    )
    put_silver(duck, {"silver runs": [run_of(0, lost=1)]})
    (found,) = duck.rows(DEFAULT.sql)
    assert found["told_lost"] == "1 acknowledged record lost"


def test_the_page_of_one_run_speaks_of_one():
    one = {"runs": 1, "judged": 1, "share": 1, "seeds": 1, "variants": 1, "first": 7}
    text = page(made_up.findings(**one, verdicts=table_of("", [])), {})
    assert ">1 run<" in text
    assert "The one run was judged in SQL. On it SQL and the simulator's own checkers say" in text
    assert "<dd>1, seed 7</dd>" in text
    assert "<dd>1, run with every seed</dd>" in text
    assert "<dd>all</dd>" in text
    assert "None of 1 run was judged" in page(made_up.findings(**one | {"judged": 0}), {})
    broke = page(made_up.findings(**one | {"judged": 0, "broke": 1}), {})
    assert "1 of 1 run broke" in broke
    assert "No run came to an end, so none was judged in SQL." in broke
