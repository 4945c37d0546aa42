"""Naming the one root cause of a gang's fault. One rule a way to fail; the first that speaks wins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from supervisor.core.gang_fault import GangFault, RankExit
from supervisor.core.reasons import Reason
from supervisor.core.spec import Cause
from supervisor.core.verdict import Verdict

Rule = Callable[[GangFault], Verdict | None]

SIGNALS = {4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}
MAX_EVIDENCE = 8


def classify(fault: GangFault) -> Verdict:
    """Name the one root cause of a gang's fault.

    Followers (peers that died because somebody else did) are never roots; with no root left the cause is
    unknown and is charged once, however many ranks exited.
    """
    return next((verdict for rule in RULES if (verdict := rule(fault))), _no_root(fault))


def hung(fault: GangFault) -> Verdict | None:
    """Judged while its ranks lived; `supervisor.core.hang` names who was behind it."""
    return fault.hang


def lost_with_its_node(fault: GangFault) -> Verdict | None:
    if not fault.lost:
        return None
    for rack in fault.placement.racks:
        if len(rack.nodes) > 1 and set(rack.nodes) <= set(fault.lost):
            because = f"all {len(rack.nodes)} nodes of rack {rack.rack} stopped answering at once"
            return Verdict(Cause.HARDWARE, f"rack {rack.rack}", Reason.RACK_LOST, because, 0.9, _evidence(fault))
    node = fault.lost[0]
    others = f" (and {', '.join(fault.lost[1:])})" if len(fault.lost) > 1 else ""
    because = f"the worker on node {node}{others} is gone and does not come back"
    return Verdict(Cause.HARDWARE, f"node {node}", Reason.NODE_LOST, because, 0.9, _evidence(fault), node)


def worker_came_back_empty(fault: GangFault) -> Verdict | None:
    if not fault.restarted:
        return None
    node = fault.restarted[0]
    because = f"the worker on node {node} was restarted and its ranks died with it"
    return Verdict(Cause.HARDWARE, f"node {node}", Reason.WORKER_RESTARTED, because, 0.7, _evidence(fault), node)


def refused_by_worker(fault: GangFault) -> Verdict | None:
    if not fault.refusals:
        return None
    node, why = fault.refusals[0]
    because = f"the worker on {node} does not start its ranks: {why[:300]}"
    return Verdict(Cause.UNKNOWN, f"node {node}", Reason.RANKS_REFUSED, because, 0.6, _evidence(fault), node)


def said_by_alarm(fault: GangFault) -> Verdict | None:
    """An alarm is more exact than the exit code that comes with it."""
    for root in fault.roots:
        if alarm := root.alarm("checkpoint-damaged"):
            which = f" {alarm.checkpoint}" if alarm.checkpoint else ""
            because = f"checkpoint{which} is damaged: {alarm.message or 'it failed its checksums at restore'}"
            return Verdict(Cause.STORAGE, "storage", Reason.CHECKPOINT_DAMAGED, because, 1.0, _evidence(fault))
        if alarm := root.alarm("checkpoint-foreign"):
            because = alarm.message or "the checkpoint belongs to another model"
            return Verdict(Cause.CONFIG, "config", Reason.CHECKPOINT_FOREIGN, because, 1.0, _evidence(fault))
        if alarm := root.alarm("non-finite-loss"):
            because = alarm.message or "the loss is not finite"
            return Verdict(Cause.SOFTWARE, "code", Reason.NON_FINITE_LOSS, because, 1.0, _evidence(fault))
    return None


CONTRACT_EXITS: dict[int, tuple[Cause, str, Reason, str]] = {  # sysexits(3), as the trainer contract has them
    78: (Cause.CONFIG, "config", Reason.CONFIGURATION_ERROR, "found a mistake in its configuration"),
    65: (Cause.DATA, "data", Reason.DATA_ERROR, "cannot use its data"),
    74: (Cause.STORAGE, "storage", Reason.STORAGE_ERROR, "could not read or write its storage"),
    70: (Cause.SOFTWARE, "code", Reason.PROGRAM_ERROR, "ended with a program error"),
    75: (Cause.UNKNOWN, "unknown", Reason.RESTART_REQUESTED, "asked to be restarted"),
}


def refused_its_input(fault: GangFault) -> Verdict | None:
    """Whatever else went away meanwhile: a mistake in the configuration or the data is there again after a restart."""
    told = tuple(root for root in fault.roots if root.exit.code in (78, 65))
    return exited_by_contract(replace(fault, exits=told)) if told else None


def exited_by_contract(fault: GangFault) -> Verdict | None:
    for code, (cause, blame, reason, what) in CONTRACT_EXITS.items():  # the most telling code first
        root = next((r for r in fault.roots if r.exit.code == code), None)
        if root:
            because = f"rank {root.rank} on {root.node} {what} (exit {code}){_last_line(root)}"
            return Verdict(cause, blame, reason, because, 0.95, _evidence(fault))
    return None


def killed_by_signal(fault: GangFault) -> Verdict | None:
    root = next((r for r in fault.roots if r.exit.signal is not None), None)
    if root is None:
        return None
    name = SIGNALS.get(root.exit.signal or 0, f"signal {root.exit.signal}")
    where = f"rank {root.rank} on {root.node}"
    if root.exit.signal == 7:
        because = f"{where} died of {name}: memory or a device under it failed"
        return Verdict(Cause.HARDWARE, f"node {root.node}", Reason.BUS_ERROR, because, 0.7, _evidence(fault), root.node)
    if root.exit.signal in (9, 15):
        because = f"{where} was killed from outside ({name}: a person, or the kernel out of memory)"
        return Verdict(Cause.UNKNOWN, "unknown", Reason.KILLED_FROM_OUTSIDE, because, 0.5, _evidence(fault))
    because = f"{where} died of {name}{_last_line(root)}"
    return Verdict(Cause.SOFTWARE, "code", Reason.KILLED_BY_SIGNAL, because, 0.7, _evidence(fault))


def exited_early(fault: GangFault) -> Verdict | None:
    root = next((r for r in fault.roots if r.exit.code == 0), None)
    if root is None or len(fault.roots) > sum(1 for r in fault.roots if r.exit.code == 0):
        return None
    because = f"rank {root.rank} exited with 0 at step {fault.step} of {fault.total_steps or 'an unknown number'}"
    return Verdict(Cause.SOFTWARE, "code", Reason.EXITED_EARLY, because, 0.8, _evidence(fault))


def exited_otherwise(fault: GangFault) -> Verdict | None:
    root = next((r for r in fault.roots if r.exit.code), None)
    if root is None:
        return None
    because = f"rank {root.rank} on {root.node} exited with {root.exit.code}{_last_line(root)}"
    return Verdict(Cause.SOFTWARE, "code", Reason.PROGRAM_ERROR, because, 0.6, _evidence(fault))


def start_deadline_passed(fault: GangFault) -> Verdict | None:
    if not fault.start_deadline_passed:
        return None
    because = "no step was completed before the start deadline passed"
    return Verdict(Cause.UNKNOWN, "unknown", Reason.START_DEADLINE_PASSED, because, 0.5, _evidence(fault))


RULES: tuple[Rule, ...] = (  # order is part of the meaning
    hung,
    said_by_alarm,
    refused_its_input,
    lost_with_its_node,
    worker_came_back_empty,
    refused_by_worker,
    exited_by_contract,
    killed_by_signal,
    exited_otherwise,
    exited_early,
    start_deadline_passed,
)


def _no_root(fault: GangFault) -> Verdict:
    because = f"{len(fault.exits)} ranks ended, each of them because of another; no first one was seen"
    return Verdict(Cause.UNKNOWN, "unknown", Reason.NO_ROOT_FOUND, because, 0.2, _evidence(fault))


def _evidence(fault: GangFault) -> tuple[str, ...]:
    lost = [f"node {node}: no worker answers" for node in fault.lost]
    roots = [f"rank {r.rank} on {r.node}: {_ending(r)}" for r in fault.roots]
    shown = (lost + roots)[:MAX_EVIDENCE]
    if fault.followers:
        shown.append(f"{fault.followers} rank(s) followed")
    return tuple(shown)


def _ending(root: RankExit) -> str:
    if root.exit.signal is not None:
        return f"died of {SIGNALS.get(root.exit.signal, f'signal {root.exit.signal}')}"
    return f"exited with {root.exit.code}"


def _last_line(root: RankExit) -> str:
    lines = [line.strip() for line in root.exit.last_words.splitlines() if line.strip()]
    return f": {lines[-1][:200]}" if lines else ""
