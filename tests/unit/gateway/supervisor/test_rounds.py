"""Orders that go round."""

from gateway.supervisor.rounds import PATIENCE, Rounds


def test_a_round_is_over_when_all_have_answered() -> None:
    rounds = Rounds()
    order = rounds.begin(1, 7, [1, 2], 0.0)
    rounds.replied(2, order, b"two")
    assert rounds.over(0.1) == []
    rounds.replied(1, order, b"one")
    (over,) = rounds.over(0.1)

    assert (over.caller, over.number, over.replies, over.waiting) == (1, 7, {2: b"two", 1: b"one"}, set())
    assert rounds.over(0.1) == []
    assert rounds.until() is None


def test_who_does_not_answer_is_known_when_patience_ends() -> None:
    rounds = Rounds()
    order = rounds.begin(1, 7, [1, 2], 10.0)
    rounds.replied(1, order, b"one")

    assert rounds.until() == 10.0 + PATIENCE
    (over,) = rounds.over(10.0 + PATIENCE)
    assert (over.replies, over.waiting) == ({1: b"one"}, {2})
    rounds.replied(2, order, b"too late")
    assert over.replies == {1: b"one"}


def test_answers_go_to_the_round_that_they_belong_to() -> None:
    rounds = Rounds()
    first = rounds.begin(1, 7, [2], 0.0)
    second = rounds.begin(3, 7, [2], 0.0)
    rounds.replied(2, second, b"second")
    rounds.replied(2, first, b"first")
    rounds.replied(2, first, b"again")

    assert [(one.caller, one.replies) for one in rounds.over(0.0)] == [(1, {2: b"first"}), (3, {2: b"second"})]


def test_nobody_waits_for_one_that_has_gone_and_nobody_answers_it() -> None:
    rounds = Rounds()
    rounds.begin(1, 7, [1, 2], 0.0)
    rounds.begin(2, 7, [2], 0.0)
    rounds.gone(2)
    assert rounds.over(0.0) == []
    rounds.gone(1)

    assert rounds.until() is None
