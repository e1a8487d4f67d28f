"""The tables from defects and reasons to Kafka's codes (K-CHECKS, K-CODES, K-RULES)."""

import pytest

from ottla.broker.errors import (
    DEFECT_CODES,
    REASON_CODES,
    REQUEST_WIDE_DEFECTS,
    ErrorCode,
    omits_log_start,
)
from ottla.idempotency.rules import RejectReason
from ottla.log.record_batch import BatchDefect


def test_every_defect_and_every_reason_has_a_code():
    assert set(DEFECT_CODES) == set(BatchDefect)
    assert set(REASON_CODES) == set(RejectReason)


def test_request_wide_defects_are_corruption():
    assert {DEFECT_CODES[each] for each in REQUEST_WIDE_DEFECTS} == {ErrorCode.CORRUPT_MESSAGE}


@pytest.mark.parametrize(
    ("code", "omits"),
    [
        *((code, True) for code in (2, 3, 6, 10, 18, 56)),
        *((code, False) for code in (-1, 7, 19, 20, 32, 45, 47, 87)),
    ],
)
def test_which_errors_say_nothing_of_the_log_start(code, omits):
    assert omits_log_start(ErrorCode(code)) is omits
