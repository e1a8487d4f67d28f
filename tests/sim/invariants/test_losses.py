"""The loss table: what was acknowledged and is gone, by acks, and what took it (promise-A1).

The row in which a log was cut explains what stood above it then; what nothing explains is called
unexplained. The counts are compared with those of the SQL in `test_invariants.py`.
"""

from ottla.sim.invariants.judge import judge
from ottla.sim.invariants.losses import NEVER_ARRIVED, UNDECIDED, UNEXPLAINED, Losses
from sim_histories import read


def table(text):
    (history,) = read(f"== a history\n{text}")
    return judge(history.events).losses


def test_a_truncation_takes_what_acks_1_acknowledged():
    found = table("""
        inv op=0..2 acks=1
        commit hw=1
        ok op=0..2 acks=1
        truncate node=2 log_index=1 off=0 aux=0
        truncate node=1 log_index=3 off=1 aux=2
        final off=0
    """)
    assert found == (Losses(1, 3, 2, (("truncate on node 1 (row 8)", 2),)),)
    assert found[0].unexplained == 0


def test_a_crash_takes_what_was_not_synced():
    found = table("""
        inv op=0..1 acks=1
        ok op=0..1 acks=1 node=3
        crash node=3 log_index=2 off=1
        commit hw=1
        final off=0
    """)
    assert found == (Losses(1, 2, 1, (("crash on node 3 (row 4)", 1),)),)


def test_what_counts_is_the_first_cut_since_it_was_written():
    """Not a cut of what stood there before, and not one of what came after it."""
    found = table("""
        inv op=0 acks=1
        append node=1 log_index=2 off=0
        truncate node=1 log_index=2 off=0 aux=1
        append node=1 log_index=2 off=0 chain=other
        answer off=0 acks=1 code=NONE
        truncate node=1 log_index=2 off=0 aux=1
        append node=1 log_index=2 off=0 chain=third
        ok op=0 acks=1
        truncate node=1 log_index=2 off=0 aux=1
    """)
    assert found[0].explained == (("truncate on node 1 (row 5)", 1),)


def test_what_stands_in_a_log_that_is_not_committed_is_undecided():
    found = table("""
        inv op=0..1 acks=1
        commit hw=1
        ok op=0..1 acks=1
        final off=0
        final off=1 aux=0
    """)
    assert found == (Losses(1, 2, 1, ((UNDECIDED, 1),)),)


def test_with_acks_0_the_answer_that_was_never_sent_has_the_place():
    found = table("""
        inv op=0..4 acks=0
        send op=0,3 pid=- epoch=- seq=- seq_last=-
        ok op=0..4 acks=0 off=-1
        answer op=0 off=10 acks=0 code=NONE node=2
        truncate node=2 log_index=7 off=12 aux=6
        truncate node=2 log_index=5 off=10 aux=4
        final off=10 value=0 pid=- epoch=- seq=-
    """)
    cuts = (("truncate on node 2 (row 13)", 1), ("truncate on node 2 (row 14)", 1))
    assert found == (Losses(0, 5, 4, ((NEVER_ARRIVED, 2), *cuts)),)


def test_a_refusal_that_nobody_heard():
    found = table("""
        inv op=0 acks=0
        send op=0 pid=- epoch=- seq=- seq_last=-
        ok op=0 acks=0 off=-1
        answer op=0 off=-1 acks=0 code=NOT_LEADER_OR_FOLLOWER
    """)
    assert found == (Losses(0, 1, 1, (("refused: NOT_LEADER_OR_FOLLOWER", 1),)),)


def test_what_nothing_explains_is_said():
    found = table("""
        inv op=0..1 acks=1
        ok op=0..1 acks=1
        truncate node=1 log_index=9 off=7 aux=2
        final off=0
    """)
    assert found == (Losses(1, 2, 1, ((UNEXPLAINED, 1),)),)
    assert found[0].unexplained == 1


def test_each_setting_has_a_row_in_order_and_nothing_lost_is_a_row_too():
    found = table("""
        inv op=0
        inv op=1 acks=1
        inv op=2 acks=0
        commit hw=3
        ok op=0
        ok op=1 acks=1
        ok op=2 acks=0 off=-1
        final off=0..2
    """)
    assert [(row.acks, row.acknowledged, row.lost) for row in found] == [
        (0, 1, 0), (1, 1, 0), (-1, 1, 0),
    ]  # fmt: skip


def test_what_was_deleted_is_not_lost():
    found = table("""
        inv op=0..2 acks=1
        commit hw=3
        ok op=0..2 acks=1
        snapshot code=taken log_index=3 off=2
        final off=2
    """)
    assert found == (Losses(1, 3, 0, ()),)
