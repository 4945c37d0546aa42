"""The resource to the core's own types. The one place where both are known."""

from __future__ import annotations

import hashlib

from supervisor.api import budget, deadlines, requests, types
from supervisor.core import observation
from supervisor.core import spec as core


def core_spec(run: types.TrainingRun) -> core.Spec:
    """What the core needs to know of `run`."""
    spec = run.spec
    recovery, checkpoint = spec.recovery, spec.checkpoint
    return core.Spec(
        name=run.metadata.name,
        layout=core.Layout(spec.layout.racks, spec.layout.nodes_per_rack, spec.layout.ranks_per_node),
        min_racks=spec.layout.lowest_racks,
        suspend=spec.suspend,
        check_layouts=spec.trainer.layout_check == "Auto",
        verify=checkpoint.verify,
        fingerprint=fingerprint(run),
        budgets=core.Budgets(
            hardware=_budget(recovery.budgets.hardware),
            software=_budget(recovery.budgets.software),
            storage=_budget(recovery.budgets.storage),
            unknown=_budget(recovery.budgets.unknown),
        ),
        node_faults=_budget(recovery.node_faults),
        no_progress_limit=recovery.no_progress_limit,
        startup_deadline_ms=recovery.startup_deadline.milliseconds,
        worker_lost_ms=recovery.worker_lost.milliseconds,
        stop_grace_ms=recovery.stop_grace.milliseconds,
        deadlines=_deadlines(recovery.deadlines),
        growing=core.Growing(recovery.growing),
        settle_ms=recovery.settle.milliseconds,
        slow_for_ms=recovery.slow_for.milliseconds,
        unsaved_limit_ms=checkpoint.unsaved_limit.milliseconds,
        prepare_ahead=spec.trainer.prepare_ahead == "Auto",
        keep_newest=checkpoint.keep_newest,
        keep_every_steps=checkpoint.keep_every_steps,
    )


def core_requests(run: types.TrainingRun) -> tuple[observation.Request, ...]:
    """What a person asks of `run`, in the order of the file."""
    return tuple(core_request(request) for request in run.spec.requests)


def fingerprint(run: types.TrainingRun) -> str:
    """Sixteen hex digits that change with the trainer or with any layout that it may have to fit."""
    spec = run.spec
    shape = (spec.layout.racks, spec.layout.lowest_racks, spec.layout.nodes_per_rack, spec.layout.ranks_per_node)
    return hashlib.sha256(f"{shape}{spec.trainer.model_dump_json()}".encode()).hexdigest()[:16]


def _budget(written: budget.Budget) -> core.Budget:
    return core.Budget(written.count, written.window.milliseconds)


def _deadlines(written: deadlines.Deadlines) -> core.Deadlines:
    default = core.Deadlines()
    return core.Deadlines(
        importing=_limits(written.import_, default.importing),
        init=_limits(written.init, default.init),
        restore=_limits(written.restore, default.restore),
        compiling=_limits(written.compile, default.compiling),
        first_step=_limits(written.first_step, default.first_step),
        step=_limits(written.step, default.step),
        save=_limits(written.save, default.save),
        evaluation=_limits(written.eval, default.evaluation),
        exit=_limits(written.exit, default.exit),
    )


def _limits(written: deadlines.Limits, default: core.Limits) -> core.Limits:
    """A bound that was given alone pushes the other one, rather than contradict it."""
    floor = written.floor.milliseconds if written.floor else default.floor_ms
    ceiling = written.ceiling.milliseconds if written.ceiling else max(default.ceiling_ms, floor)
    return core.Limits(min(floor, ceiling), ceiling)


def core_request(request: requests.Request) -> observation.Request:
    """One request, wherever it was written."""
    if request.checkpoint_now is not None:
        return observation.Request(request.id, observation.Ask.CHECKPOINT_NOW)
    if request.stop is not None:
        return observation.Request(request.id, observation.Ask.STOP)
    if (back := request.rollback) is not None:
        return observation.Request(request.id, observation.Ask.ROLLBACK, back.to_step, back.skip_batches)
    from_step = request.resume.from_step if request.resume else None
    return observation.Request(request.id, observation.Ask.RESUME, from_step)
