"""The hub's rules, without sockets."""

from __future__ import annotations

import dataclasses

import pytest

from supervisor.wire.hub import Ring, StaleSession, SyncHub
from supervisor.wire.messages import EventRecord, ExitReport, GangReport, Order, RankReport, Report, TaskResult


def event(sequence: int, kind: str = "step", rank: int = 0) -> EventRecord:
    return EventRecord(1, rank, sequence, {"event": kind})


def report(serial: int, *events: EventRecord, **members: object) -> Report:
    return Report("n1", "s1", serial=serial, events=events, **members)  # type: ignore[arg-type]


def gang(state: str = "running", **rank: object) -> tuple[GangReport, ...]:
    values = {"rank": 0, "state": "running", **rank}
    return (GangReport("training", 1, state, (RankReport(**values),)),)  # type: ignore[arg-type]


def sequences(hub: SyncHub, after: int = 0) -> list[int]:
    return [queued.record.sequence for queued in hub.take_events(after)]


def test_the_revision_grows_only_with_new_content() -> None:
    hub = SyncHub()
    first = hub.set_order("n1", Order(0, key="a"))
    assert hub.set_order("n1", Order(99, key="a")) == first
    assert hub.set_order("n1", Order(0, key="b")) > first
    assert hub.set_order("n2", Order(0, key="b")) > 0


def test_a_restarted_supervisors_order_is_newer_than_any_that_a_worker_knows() -> None:
    hub = SyncHub()
    far_ahead = hub.set_order("n1", Order(0, key="a")) + 10_000_000
    order = hub.newer_order("n1", "s1", far_ahead)
    assert order is not None
    assert (order.key, order.revision > far_ahead) == ("a", True)
    assert hub.newer_order("n1", "s1", order.revision) is None
    hub.accept_report(report(1, order_revision=far_ahead * 2))
    assert hub.set_order("n1", Order(0, key="c")) > far_ahead * 2


def test_an_event_that_comes_twice_is_queued_and_heard_once() -> None:
    heard: list[int] = []
    hub = SyncHub(listener=lambda node, record: heard.append(record.sequence))
    hub.accept_report(report(1, event(1), event(2)))
    hub.accept_report(report(2, event(1), event(2), event(3)))
    assert sequences(hub) == heard == [1, 2, 3]
    assert sequences(hub, after=2) == [3]


def test_what_the_journal_holds_never_comes_again() -> None:
    hub = SyncHub()
    hub.resume({(1, 0): 2})
    answer = hub.accept_report(report(1, event(1), event(2), event(3)))
    assert sequences(hub) == [3]
    assert (answer.seen, answer.recorded) == (((1, 0, 3),), ((1, 0, 2),))


def test_events_chosen_for_another_supervisor_are_not_taken_since_some_may_be_missing() -> None:
    hub = SyncHub()
    answer = hub.accept_report(report(1, event(7), supervisor="the one before"))
    assert sequences(hub) == []
    assert (answer.seen, answer.supervisor) == (((1, 0, 0),), hub.instance)
    hub.accept_report(report(2, event(6), event(7), supervisor=answer.supervisor))
    assert sequences(hub) == [6, 7]


def test_a_full_queue_leaves_events_with_the_worker_and_loses_none() -> None:
    hub = SyncHub(max_queued=2)
    assert hub.accept_report(report(1, event(1), event(2), event(3))).seen == ((1, 0, 2),)
    hub.mark_recorded(hub.take_events()[0].cursor)
    hub.accept_report(report(2, event(3)))
    assert sequences(hub) == [2, 3]


def test_a_report_that_was_delayed_changes_nothing_but_its_events_count() -> None:
    hub = SyncHub()
    hub.accept_report(report(5, gangs=gang(completed=9)))
    hub.accept_report(report(4, event(1), gangs=gang(completed=3)))
    assert hub.report("n1").gangs[0].ranks[0].completed == 9
    assert sequences(hub) == [1]


def test_a_retired_session_stays_retired() -> None:
    hub = SyncHub()
    hub.accept_report(report(1))
    hub.newer_order("n1", "s2", 0)
    assert (hub.session("n1"), hub.report("n1")) == ("s2", None)
    with pytest.raises(StaleSession):
        hub.accept_report(report(2))
    with pytest.raises(StaleSession):
        hub.newer_order("n1", "s1", 0)


EXIT = ExitReport(1, None, False, 0)


@pytest.mark.parametrize(
    ("after", "events", "urgent"),
    [
        ({"gangs": gang(entered=5, completed=4)}, (event(1),), False),
        ({"gangs": gang(completed=3, output_bytes=9)}, (), False),
        ({"gangs": gang(state="stopping", completed=3)}, (), True),
        ({"gangs": gang(completed=3, phase="save")}, (), True),
        ({"gangs": (dataclasses.replace(gang()[0], ranks=(RankReport(0, "exited", exit=EXIT),)),)}, (), True),
        ({"gangs": ()}, (), True),
        ({"gangs": gang(completed=3), "results": (TaskResult("t", "survey", True),)}, (), True),
        ({"gangs": gang(completed=3), "order_key": "next"}, (), True),
        ({"gangs": gang(completed=3)}, (event(1, "alarm"),), True),
        ({"gangs": gang(completed=3)}, (event(1, "checkpoint"),), True),
    ],
)
def test_the_doorbell_tells_what_cannot_wait_from_progress(
    after: dict[str, object], events: tuple[EventRecord, ...], urgent: bool
) -> None:
    rings: list[Ring] = []
    hub = SyncHub(rings.append)
    hub.accept_report(report(1, gangs=gang(completed=3)))
    hub.accept_report(report(2, *events, **after))
    assert rings[-1].urgent == urgent, rings[-1].reason


def test_the_first_step_of_an_attempt_cannot_wait() -> None:
    rings: list[Ring] = []
    hub = SyncHub(rings.append)
    hub.accept_report(report(1, gangs=gang(completed=0)))
    hub.accept_report(report(2, gangs=gang(completed=1)))
    assert rings[-1] == Ring("n1", True, "first step")
