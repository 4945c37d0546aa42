"""One attempt, from joining the gang to the last save. Reads top to bottom."""

from __future__ import annotations

import enum
import math
import time
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from training.chaos import inject
from training.checkpoint import restore
from training.compiling import Compiler
from training.config import Config, ConfigError
from training.contract import Contract
from training.control import Control
from training.data import Batches
from training.events import Events
from training.feed import Feed
from training.flops import count_parameters, flops_per_token
from training.gang import join, leave
from training.inbox import unpack_inbox
from training.layout_check import check_layout
from training.mesh import everywhere, make_mesh
from training.optimizer import learning_rate
from training.outcome import NonFiniteLoss
from training.own_work import OwnWork, cpu_clocks
from training.peak import peak_of_run
from training.saves import Saves, fingerprint
from training.shares import share_out
from training.step import Metrics, State, init_state, make_evaluation, make_step, state_shapes


class Ending(enum.Enum):
    FINISHED = "all steps done"
    STOPPED = "stopped as asked"


@dataclass(frozen=True, slots=True)
class Job:
    config: Config
    contract: Contract
    batches: Batches
    events: Events


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that stands still while the state moves."""

    mesh: Mesh
    start: int  # updates already in the state
    total: int
    feed: Feed
    program: Any  # (state, batch, rate) -> (state, metrics)
    saves: Saves
    evaluation: Evaluation


def run(job: Job) -> Ending:
    """Train this rank's part until the last step or a request to stop. Raises what `training.outcome` judges."""
    control = Control(job.contract.control)
    prepared, state = _prepare(job)
    job.events.phase("train")
    ending = _train(job, prepared, state, control)
    leave(job.contract)
    return ending


def _prepare(job: Job) -> tuple[Prepared, State]:
    """Join the gang, make or restore the state, and compile."""
    config, contract, events = job.config, job.contract, job.events
    fit = check_layout(config, contract.layout)
    if not fit.fits:
        raise ConfigError(fit.reason)
    total = total_steps(config, contract)

    events.phase("init")
    join(contract)
    mesh = make_mesh(contract.layout)
    events.emit(_hello(config, contract, mesh, total))
    state, start = _begin(job, mesh)

    events.phase("compile")
    feed = Feed(mesh, share_out(config.data, contract.layout.ranks), config.data.sequence)
    compiler = Compiler(config, contract, mesh)
    rate = jax.ShapeDtypeStruct((), np.float32, sharding=everywhere(mesh))
    program = compiler.compile("step", make_step(config, mesh), state_shapes(config, mesh), feed.shapes(), rate)
    saves, evaluation = Saves(config, contract, events, start), Evaluation(job, mesh, feed, compiler)
    return Prepared(mesh, start, total, feed, program, saves, evaluation), state


def _train(job: Job, prepared: Prepared, state: State, control: Control) -> Ending:
    """The step loop. At most one step is in flight; the next one's rows are read meanwhile."""
    config, events, batches, total = job.config, job.events, job.batches, prepared.total
    feed, saves, evaluation = prepared.feed, prepared.saves, prepared.evaluation
    plan, leader = job.contract.plan, job.contract.process_id == 0
    clocks = cpu_clocks() if jax.default_backend() == "cpu" else ()
    loaded = feed.load(batches.train_rows, plan.batch_after(prepared.start))
    for step in range(prepared.start + 1, total + 1):
        began, work = time.perf_counter(), OwnWork(clocks)
        with work.on_host():
            requests = control.read()
            inject(requests, step, events)
            save = leader and (requests.save or saves.overdue())
            batch = feed.batch(loaded, save=save, stop=leader and requests.stop)
            rate = np.float32(learning_rate(config.optimizer, step, total))
        state, metrics = prepared.program(state, batch, _scalar(rate, prepared.mesh))
        events.emit({"event": "step", "step": step, "state": "entered"})
        with work.on_host():
            loaded = feed.load(batches.train_rows, plan.batch_after(step))

        seen = jax.tree.map(lambda leaf: np.asarray(leaf.addressable_data(0)), metrics)  # waits for the step
        loss, seconds = float(seen.loss), time.perf_counter() - began
        completed = {"event": "step", "step": step, "state": "completed", "tokens": int(seen.tokens), "loss": loss}
        completed["ownSeconds"] = work.seconds()
        if leader:
            completed["metrics"] = _metrics(config, plan.batch_after(step - 1), seen, float(rate), seconds)
        events.emit(completed)
        if not math.isfinite(loss):
            raise NonFiniteLoss(step, loss)
        if leader:
            print(f"step {step}/{total} loss {loss:.4f} {seconds:.3f} s", flush=True)

        heard = unpack_inbox(seen.inbox)
        if heard.stop:
            saves.finish(step, state)
            return Ending.STOPPED
        if saves.due(step, heard.save):
            saves.save(step, state)
        if step % config.evaluation.every_steps == 0 and step < total:
            evaluation.run(step, state)
    saves.finish(total, state)
    evaluation.run(total, state)
    return Ending.FINISHED


def total_steps(config: Config, contract: Contract) -> int:
    """Of the whole run: what the plan's token budget pays for, or the configuration's number. Raises ConfigError."""
    budget = contract.plan.token_budget
    if budget is None:
        return config.steps
    if budget < config.tokens_per_step:
        raise ConfigError(
            f"the plan's tokenBudget of {budget} is less than one step of {config.tokens_per_step} tokens; raise it"
        )
    return budget // config.tokens_per_step


def _begin(job: Job, mesh: Mesh) -> tuple[State, int]:
    """The state to go on from, and the number of updates in it. Fresh and restored states have the same shardings."""
    config, contract = job.config, job.contract
    if contract.resume is None:
        return init_state(config, mesh), 0
    if contract.checkpoints is None:
        raise ConfigError("MARIN_SUP_RESUME names a checkpoint, but MARIN_SUP_CHECKPOINTS is not set")
    job.events.phase("restore")
    attempt, step = contract.resume
    return restore(contract.checkpoints, attempt, step, state_shapes(config, mesh), fingerprint(config.model)), step


def _scalar(value: np.float32, mesh: Mesh) -> jax.Array:
    return jax.make_array_from_callback((), everywhere(mesh), lambda _: np.asarray(value))


def _hello(config: Config, contract: Contract, mesh: Mesh, total: int) -> dict[str, Any]:
    measured = config.device.peak == "measure"
    return {
        "event": "hello",
        "contract": 1,
        "tokensPerStep": config.tokens_per_step,
        "flopsPerStep": flops_per_token(config) * config.tokens_per_step,
        "peakFlopsPerDevice": peak_of_run(contract.cache, mesh.size) if measured else config.device.peak,
        "peakIsMeasured": measured,
        "devices": mesh.size,
        "parameters": count_parameters(config.model).total,
        "totalSteps": total,
    }


def _metrics(config: Config, batch: int, seen: Metrics, rate: float, seconds: float) -> dict[str, float]:
    """Of one step on global batch `batch`. All ranks have the same, so rank 0 alone says them."""
    wanted = float(seen.tokens) * config.model.experts_per_token * config.model.layers
    return {
        "loss": float(seen.loss),
        "lr": rate,
        "gradNorm": float(seen.gradient_norm),
        "droppedAssignments": float(seen.dropped),
        "dropFraction": float(seen.dropped) / wanted,
        "sampleFirst": batch * config.data.global_batch,
        "sampleCount": int(seen.rows),
        "batchHash": unpack_inbox(seen.inbox).checksum,
        "stepSeconds": seconds,
    }


class Evaluation:
    """Mean loss over fixed held-out windows, the same on every layout. Compiled when first asked for."""

    def __init__(self, job: Job, mesh: Mesh, feed: Feed, compiler: Compiler) -> None:
        self._job, self._feed = job, feed
        self._mesh, self._compiler = mesh, compiler
        self._compiled: Any = None

    def run(self, step: int, state: State) -> None:
        """Emit one `eval` event."""
        self._job.events.phase("eval")
        if self._compiled is None:
            shapes, evaluation = (
                state_shapes(self._job.config, self._mesh),
                make_evaluation(self._job.config, self._mesh),
            )
            self._compiled = self._compiler.compile(
                "evaluation", evaluation, shapes.parameters, shapes.bias, self._feed.shapes()
            )
        loss = tokens = 0.0
        for index in range(self._job.config.evaluation.batches):
            batch = self._feed.batch(self._feed.load(self._job.batches.heldout_rows, index))
            added = self._compiled(state.parameters, state.bias, batch)
            loss, tokens = loss + float(added[0]), tokens + float(added[1])
        self._job.events.emit({"event": "eval", "step": step, "loss": loss / tokens})
        self._job.events.phase("train")
