"""Between the wire and the core: messages to observations, intents to orders. No judgement on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from supervisor.core import actions, observation
from supervisor.core.observation import Checkpoint, RankState, StepState
from supervisor.core.spec import Layout
from supervisor.wire import messages
from supervisor.wire.events import MAX_STEP
from supervisor.wire.text import printable

LAST_WORDS = 600  # characters of a rank's output that the core looks at
MAX_SURVEYED = 4096
MAX_RANKS = 256  # of one node
MAX_CORES = 4096
MAX_FRAMES, MAX_FRAME = 32, 200


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every order of this run carries, beside what the core decides."""

    trainer: messages.TrainerCommand
    checkpoints: str
    cache: str
    plan: dict[str, Any] = field(default_factory=dict)
    ranks_per_node: int = 0

    @property
    def standby(self) -> messages.Standby | None:
        """What every node keeps ready, spares as well: one may take over at any time."""
        if not self.trainer.module or not self.trainer.preload or self.ranks_per_node <= 0:
            return None
        return messages.Standby(self.trainer, self.ranks_per_node)


# ---- reports to observations


def worker_seen(
    node: str, session: str, connected: bool, report: messages.Report | None, now: int
) -> observation.Worker:
    if report is None:
        return observation.Worker(node, session, connected)
    gangs = tuple(_gang(gang, now) for gang in report.gangs if gang.kind == messages.TRAINING)
    return observation.Worker(
        node=node,
        session=session,
        connected=connected,
        order_key=report.order_key,
        newest_attempt=report.newest_attempt,
        offer=report.offer,
        gangs=gangs,
        results=tuple(_result(result) for result in report.results),
    )


def _gang(gang: messages.GangReport, now: int) -> observation.Gang:
    refused = f"{gang.state}: {gang.reason}"[:LAST_WORDS] if gang.state in ("refused", "unsupported") else ""
    return observation.Gang(gang.number, tuple(_rank(rank, now) for rank in gang.ranks), refused)


def _rank(rank: messages.RankReport, now: int) -> observation.Rank:
    state = RankState(rank.state) if rank.state in RankState._value2member_map_ else RankState.RUNNING
    ended = None
    if (end := rank.exit) is not None:
        ended = observation.Exit(end.code, end.signal, end.by_us, now - end.ago_ms, end.tail[-LAST_WORDS:])
    own_ms, moved = max(0, rank.own_ms), max(0, rank.moved)
    return observation.Rank(rank.rank, state, rank.phase, rank.entered, rank.completed, ended, own_ms, moved)


def _result(result: messages.TaskResult) -> observation.TaskResult:
    match result.kind:
        case "survey":
            return _survey(result)
        case "check":
            return _check(result)
        case "evidence":
            return _evidence(result)
        case "prepare":
            return _prepared(result)
        case _:
            return observation.TaskDone(result.id, result.ok, result.error)


def _survey(result: messages.TaskResult) -> observation.Survey:
    if not result.ok:
        return observation.Survey(result.id, error=result.error or "the survey failed")
    found = result.result
    steps = tuple(step for item in _list(found, "steps")[:MAX_SURVEYED] if (step := _surveyed(item)))
    attempts = [number for number in _list(found, "attempts") if isinstance(number, int)]
    return observation.Survey(result.id, steps, max(attempts, default=0))


def _surveyed(item: Any) -> observation.SurveyedStep | None:
    if not isinstance(item, dict) or item.get("state") not in StepState._value2member_map_:
        return None
    attempt, step = item.get("attempt"), item.get("step")
    if not isinstance(attempt, int) or not isinstance(step, int) or not 0 <= step <= MAX_STEP:
        return None
    reason = str(item.get("reason") or "")[:500]
    return observation.SurveyedStep(attempt, step, StepState(item["state"]), _parent(item.get("parent")), reason)


def _parent(found: Any) -> Checkpoint | None:
    match found:
        case [int(attempt), int(step)] if attempt > 0 <= step:
            return Checkpoint(attempt, step)
        case _:
            return None


def _check(result: messages.TaskResult) -> observation.LayoutCheck:
    if not result.ok:
        return observation.LayoutCheck(result.id, error=result.error or "the check failed")
    found = result.result
    answers = tuple(answer for item in _list(found, "answers") if (answer := _answer(item)))
    if found.get("state") == "failed":
        output = str(found.get("output") or found.get("reason") or "it exited without an answer")
        code = found.get("exit_code")
        error = "" if answers else output[-1000:].strip()
        return observation.LayoutCheck(result.id, answers, error, code if isinstance(code, int) else None)
    return observation.LayoutCheck(result.id, answers)


def _answer(item: Any) -> observation.LayoutAnswer | None:
    layout = item.get("layout") if isinstance(item, dict) else None
    if not isinstance(layout, dict):
        return None
    shape = [n for n in map(layout.get, ("racks", "nodesPerRack", "ranksPerNode")) if isinstance(n, int) and n > 0]
    if len(shape) != 3:
        return None
    return observation.LayoutAnswer(Layout(*shape), item.get("fits") is True, str(item.get("reason") or "")[:500])


def _evidence(result: messages.TaskResult) -> observation.Evidence:
    if not result.ok:
        return observation.Evidence(result.id, error=result.error or "the ranks could not be looked at")
    ranks = tuple(seen for item in _list(result.result, "ranks")[:MAX_RANKS] if (seen := _rank_evidence(item)))
    return observation.Evidence(result.id, ranks)


def _rank_evidence(item: Any) -> observation.RankEvidence | None:
    if not isinstance(item, dict) or not isinstance(item.get("rank"), int):
        return None
    cpu = item.get("cpu")
    seen_cpu = float(cpu) if isinstance(cpu, int | float) and 0 <= cpu < MAX_CORES else None
    stack = tuple(printable(frame, MAX_FRAME) for frame in _list(item, "stack")[:MAX_FRAMES] if isinstance(frame, str))
    state, error = str(item.get("state") or "")[:1], printable(str(item.get("error") or ""), MAX_FRAME)
    return observation.RankEvidence(item["rank"], state, seen_cpu, stack, error)


def _prepared(result: messages.TaskResult) -> observation.Prepared:
    if not result.ok:
        return observation.Prepared(result.id, error=result.error or "it failed")
    found = result.result
    answers = tuple(answer for item in _list(found, "answers") if (answer := _answer(item)))
    said = str(found.get("output") or found.get("reason") or "the trainer does not prepare programs")
    return observation.Prepared(result.id, answers, "" if answers else printable(said[-LAST_WORDS:], LAST_WORDS))


def _list(found: dict[str, Any], name: str) -> list[Any]:
    value = found.get(name)
    return value if isinstance(value, list) else []


# ---- intents to orders


def order_for(order: actions.WorkerOrder, around: Surroundings, fails: dict[int, int]) -> messages.Order:
    """`fails`: fault injection per rank, the one thing in an order that the core does not know of."""
    gangs = (_gang_order(order.gang, around, fails),) if order.gang else ()
    work = tuple(_task(task, around) for task in order.tasks)
    return messages.Order(revision=0, key=order.key, gangs=gangs, tasks=work, standby=around.standby)


def _gang_order(gang: actions.GangIntent, around: Surroundings, fails: dict[int, int]) -> messages.GangOrder:
    ours = {rank.rank for rank in gang.ranks}
    return messages.GangOrder(
        kind=messages.TRAINING,
        number=gang.attempt,
        command=gang.command.value,
        ranks=tuple(messages.RankAssignment(r.rank, r.slot, r.rack_ordinal) for r in gang.ranks),
        world_size=gang.layout.world_size,
        coordinator=gang.coordinator,
        layout=_shape(gang.layout),
        trainer=around.trainer,
        checkpoints=around.checkpoints,
        cache=around.cache,
        resume=messages.CheckpointRef(gang.resume.attempt, gang.resume.step) if gang.resume else None,
        plan=around.plan | ({"skippedBatches": [list(skip) for skip in gang.skips]} if gang.skips else {}),
        control=messages.Control(gang.save, gang.stop, tuple((r, n) for r, n in sorted(fails.items()) if r in ours)),
        grace_ms=gang.grace_ms,
    )


def _shape(layout: Layout) -> messages.LayoutShape:
    return messages.LayoutShape(layout.racks, layout.nodes_per_rack, layout.ranks_per_node)


def _task(task: actions.Task, around: Surroundings) -> messages.TaskOrder:
    root = around.checkpoints
    match task.kind:
        case actions.TaskKind.SURVEY:
            arguments: dict[str, Any] = {"root": root}
        case actions.TaskKind.CHECK:
            shapes = [messages_layout(layout) for layout in task.layouts]
            arguments = {"trainer": _checked_trainer(around.trainer), "layouts": shapes}
        case actions.TaskKind.SET_ASIDE:
            checkpoint = task.checkpoint
            arguments = {"root": root} | (
                {"attempt": checkpoint.attempt, "step": checkpoint.step} if checkpoint else {}
            )
        case actions.TaskKind.COLLECT:
            keep = [[c.attempt, c.step] for c in task.keep]
            arguments = {"root": root, "keep": keep, "current": task.current}
        case actions.TaskKind.EVIDENCE:
            arguments = {"attempt": task.attempt}
        case actions.TaskKind.PREPARE:
            shapes = [messages_layout(layout) for layout in task.layouts]
            trainer = _checked_trainer(around.trainer)
            arguments = {"trainer": trainer, "layouts": shapes, "cache": around.cache}
    return messages.TaskOrder(task.id, task.kind.value, arguments)


def messages_layout(layout: Layout) -> dict[str, int]:
    """The contract's form of a layout."""
    return {"racks": layout.racks, "nodesPerRack": layout.nodes_per_rack, "ranksPerNode": layout.ranks_per_node}


def _checked_trainer(trainer: messages.TrainerCommand) -> dict[str, Any]:
    return {
        "module": trainer.module,
        "args": list(trainer.args),
        "command": list(trainer.command),
        "preload": [],  # the check touches no device and should not wait for heavy imports
        "environment": dict(trainer.environment),
        "working_directory": trainer.working_directory,
    }
