"""One decision in prose: what was seen, what was concluded, why, what is done, what happens next."""

from __future__ import annotations

from collections import Counter

from supervisor.cli import amounts
from supervisor.core.actions import Action, Command, FenceWorker, SendOrder, StartWorker, TaskKind, WorkerOrder
from supervisor.core.incident import Incident, Outcome
from supervisor.core.memory import Attempt, Memory, Phase, Stage
from supervisor.core.observation import Gang, Observation, Rank, RankState
from supervisor.driver import Decided
from supervisor.wire.text import printable

SHOWN_EXITS = 12
MAX_TEXT = 1000
MAX_WORDS = 160
STAND_BY = "stand by"
RESTING = (Phase.SUCCEEDED, Phase.HELD, Phase.SUSPENDED, Phase.FAILED)  # nobody stands by for anything
SIGNALS = {6: "SIGABRT", 7: "SIGBUS", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}
TASKS = {
    TaskKind.SURVEY: "look which checkpoints can be restored",
    TaskKind.CHECK: "ask the trainer which layouts it accepts",
    TaskKind.SET_ASIDE: "set a damaged checkpoint aside",
    TaskKind.EVIDENCE: "look at ranks that stand still",
    TaskKind.PREPARE: "compile programs for smaller layouts ahead",
    TaskKind.COLLECT: "remove checkpoints that are no longer kept",
}


def explanation(decided: Decided) -> list[tuple[str, list[str]]]:
    """(heading, lines) in order; sections with nothing to say are left out."""
    sections = [
        ("seen", _seen(decided)),
        ("concluded", _concluded(decided)),
        ("why", _why(decided)),
        ("done", _done(decided)),
        ("next", _next(decided)),
    ]
    return [(heading, [printable(line, MAX_TEXT) for line in lines]) for heading, lines in sections if lines]


def _seen(decided: Decided) -> list[str]:
    observation, attempt = decided.observation, decided.memory.attempt
    if decided.decision.memory.phase is Phase.SUCCEEDED:
        return _requests(decided)
    lines = [_workers(observation, decided)]
    if attempt is not None:
        lines += _gang(observation, attempt)
    if observation.away_ms:
        lines.append(f"nobody had watched for {amounts.seconds(observation.away_ms)} s")
    return lines + _requests(decided)


def _requests(decided: Decided) -> list[str]:
    answered = {outcome.id for outcome in decided.memory.requests}
    new = [request for request in decided.observation.requests if request.id not in answered]
    return [f"a request {request.ask.value} ({request.id})" for request in new]


def _workers(observation: Observation, decided: Decided) -> str:
    connected = {worker.node for worker in observation.workers if worker.connected}
    known = [node.name for node in observation.nodes]
    line = f"workers: {len(connected & set(known))} of {len(known)} answer"
    dead = [node.name for node in observation.nodes if not node.present]
    silent = [name for name in known if name not in connected and name not in dead]
    if dead:
        line += f"; dead: {', '.join(dead)}"
    if silent:
        since = dict(decided.memory.unheard)
        told = [
            f"{name} ({amounts.span((decided.now_ms - since.get(name, decided.now_ms)) / 1000)})" for name in silent
        ]
        line += f"; not heard: {', '.join(told)}"
    return line


def _gang(observation: Observation, attempt: Attempt) -> list[str]:
    ranks = _ranks(observation, attempt.number)
    states = Counter(rank.state for _, rank in ranks)
    counted = ", ".join(f"{states[state]} {state.value}" for state in RankState if states[state])
    completed = max((rank.completed for _, rank in ranks), default=attempt.completed)
    expected = len(attempt.placement.ranks())
    lines = [
        f"attempt {attempt.number} ({attempt.stage.value}) on {', '.join(attempt.placement.nodes)}: "
        f"{len(ranks)} of {expected} ranks report{f' ({counted})' if counted else ''}, step {completed} completed"
    ]
    exited = [(node, rank) for node, rank in ranks if rank.exit is not None]
    lines += [f"  {_exit(node, rank)}" for node, rank in exited[:SHOWN_EXITS]]
    if len(exited) > SHOWN_EXITS:
        lines.append(f"  and {len(exited) - SHOWN_EXITS} more ranks exited")
    for alarm in [alarm for alarm in observation.alarms if alarm.attempt == attempt.number][-SHOWN_EXITS:]:
        lines.append(f"  rank {alarm.rank} raised the alarm {alarm.kind}: {alarm.message[:MAX_WORDS]}")
    return lines


def _ranks(observation: Observation, attempt: int) -> list[tuple[str, Rank]]:
    found: list[tuple[str, Rank]] = []
    for worker in observation.workers:
        gang: Gang | None = worker.gang(attempt)
        found += [(worker.node, rank) for rank in gang.ranks] if gang else []
    return sorted(found, key=lambda pair: pair[1].rank)


def _exit(node: str, rank: Rank) -> str:
    left = rank.exit
    if left is None:
        return f"rank {rank.rank} on {node} lives"
    how = f"exited with {left.code}" if left.signal is None else f"was killed by {_signal(left.signal)}"
    ours = " after we told it to stop" if left.by_us else ""
    words = [line for line in left.last_words.strip().splitlines() if line.strip()]
    said = f', its last words: "{words[-1].strip()[:MAX_WORDS]}"' if words and left.code != 0 and not left.by_us else ""
    return f"rank {rank.rank} on {node} {how}{ours}{said}"


def _signal(number: int) -> str:
    return SIGNALS.get(number, f"signal {number}")


def _concluded(decided: Decided) -> list[str]:
    incidents = decided.decision.incidents or _open_one(decided.decision.memory)
    lines: list[str] = []
    for incident in {incident.number: incident for incident in incidents}.values():
        lines += _incident(incident)
    return lines


def _open_one(memory: Memory) -> tuple[Incident, ...]:
    return (memory.incident,) if memory.incident else ()


def _incident(incident: Incident) -> list[str]:
    verdict = incident.verdict
    if verdict is None:
        return [
            f"{incident.name}: attempt {incident.attempt} has failed; the cause is named once all its ranks have ended"
        ]
    lines = [
        f"{incident.name}: {verdict.cause.value}, blamed on {verdict.blame}, {amounts.share(verdict.confidence)} sure: "
        f"{verdict.because}"
    ]
    lines += [f"  {evidence}" for evidence in verdict.evidence]
    if incident.outcome is not Outcome.OPEN:
        lost = f", {incident.steps_lost} steps lost" if incident.steps_lost is not None else ""
        lines.append(f"  it is {incident.outcome.value}{lost}")
    return lines


def _why(decided: Decided) -> list[str]:
    memory = decided.decision.memory
    notes = [f"{note.reason.value}: {note.message}" for note in decided.decision.notes]
    if memory.hold is not None:  # the same words in a verdict, a note and the hold itself are said once
        concluded = "\n".join(_concluded(decided))
        new = [note for note in decided.decision.notes if note.message.removeprefix("held: ") not in concluded]
        notes = [f"{note.reason.value}: {note.message}" for note in new]
        if memory.hold.message in concluded:
            return notes
    standing = f"{memory.reason.value}: {memory.message}"
    told = not memory.message or any(memory.message in note for note in notes)
    return notes if told else [*notes, standing]


def _done(decided: Decided) -> list[str]:
    decision = decided.decision
    lines = [
        f"{i.rung.value}: {i.action}"
        for i in _open_one(decision.memory)
        if i.rung is not None and i.outcome is Outcome.OPEN
    ]
    at_rest = decision.memory.phase in RESTING
    return lines + [line for line in action_lines(decision.actions) if not (at_rest and line.startswith(STAND_BY))]


def action_lines(actions: tuple[Action, ...]) -> list[str]:
    """What is asked of the host, nodes that are asked the same in one line."""
    asked: dict[str, list[str]] = {}
    for action in actions:
        match action:
            case StartWorker(node):
                asked.setdefault("start a worker", []).append(node)
            case FenceWorker(node, _):
                asked.setdefault("end the worker for good", []).append(node)
            case SendOrder(node, order):
                for text in _order(order):
                    asked.setdefault(text, []).append(node)
    return [f"{text}: {', '.join(nodes)}" for text, nodes in asked.items()]


def _order(order: WorkerOrder) -> list[str]:
    texts = [TASKS[task.kind] for task in order.tasks]
    if order.gang is not None:
        verb = "run" if order.gang.command is Command.RUN else "stop"
        texts.append(
            f"{verb} the ranks of attempt {order.gang.attempt}" + (", which save and stop" if order.gang.stop else "")
        )
    return texts or [STAND_BY]


def _next(decided: Decided) -> list[str]:
    decision = decided.decision
    memory, attempt = decision.memory, decision.memory.attempt
    if memory.phase is Phase.SUCCEEDED:
        return ["nothing: all steps are trained"]
    if memory.hold is not None:
        return [f"nothing by itself; {memory.hold.way_out}"]
    if memory.phase is Phase.SUSPENDED:
        return ["nothing until the run is resumed"]
    lines = [_awaited(memory, attempt)]
    if memory.incident is not None and memory.incident.rung is not None:
        lines.append(f"{memory.incident.name} is over once step {memory.incident.step + 1} is completed")
    if decision.requeue_after_ms is not None:
        lines.append(f"looked at again within {amounts.seconds(decision.requeue_after_ms)} s, or when a worker reports")
    return lines


def _awaited(memory: Memory, attempt: Attempt | None) -> str:
    if attempt is None:
        return f"the next attempt will be number {memory.newest_attempt + 1}"
    match attempt.stage:
        case Stage.LAUNCHING:
            return f"attempt {attempt.number} completes its first step, or is stopped at its deadline"
        case Stage.STEPPING:
            return f"attempt {attempt.number} goes on; nothing is to be done"
        case Stage.SAVING:
            return f"attempt {attempt.number} saves, then its ranks end"
        case Stage.STOPPING:
            return f"once all ranks of attempt {attempt.number} have ended, the cause is named and the next step chosen"
