"""A trainer of the standard library alone that keeps the contract, and misbehaves as its arguments say.

Steps take a few milliseconds; its state is one number in a file per checkpoint. The ranks of an attempt meet in each
step, as in a collective: one that is late or gone keeps the others waiting.
"""

import argparse
import json
import os
import sys
import threading
import time
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--step-seconds", type=float, default=0.01)
parser.add_argument("--save-every", type=int, default=5)
parser.add_argument("--exit", type=int, default=0, help="at the end, or at once with --at-once")
parser.add_argument("--at-once", action="store_true")
parser.add_argument("--garbage", type=int, default=0, help="lines of garbage into the event file, each step")
parser.add_argument("--shout", type=int, default=0, help="MiB to standard output at the start")
parser.add_argument("--stale", action="store_true", help="speak as if of an attempt long ago")
parser.add_argument("--long-step", type=int, help="this step takes a minute")
parser.add_argument("--alarm", help="raise this alarm at the end of the first attempt")
options = parser.parse_args()

EVENTS = os.open(os.environ["MARIN_SUP_EVENTS"], os.O_WRONLY | os.O_APPEND)


def tell(event, **members):
    os.write(EVENTS, json.dumps({"event": event, **members}).encode() + b"\n")


if os.environ.get("MARIN_SUP_CHECK"):
    for line in Path(os.environ["MARIN_SUP_CHECK"]).read_text().splitlines():
        tell("layout", layout=json.loads(line), fits=True, reason="one number fits everywhere")
    sys.exit(0)

attempt = int(os.environ["MARIN_SUP_ATTEMPT"])
folder = Path(os.environ["MARIN_SUP_CHECKPOINTS"])
if options.at_once:
    print("nothing will come of this", file=sys.stderr)
    sys.exit(options.exit)
for _ in range(options.shout):
    sys.stdout.buffer.write(b"A" * (1 << 20))
sys.stdout.flush()

tell(
    "hello",
    contract=1,
    tokensPerStep=10,
    flopsPerStep=0,
    peakFlopsPerDevice=None,
    devices=1,
    parameters=1,
    totalSteps=options.steps,
)
rank, ranks = int(os.environ["MARIN_SUP_PROCESS_ID"]), int(os.environ["MARIN_SUP_NUM_PROCESSES"])
plan = json.loads(Path(os.environ["MARIN_SUP_PLAN"]).read_text())
gang = folder / f"gang-{attempt}"
gang.mkdir(parents=True, exist_ok=True)


def requests():
    return {"chaos": {}} | json.loads(Path(os.environ["MARIN_SUP_CONTROL"]).read_text())


def hang_as_asked():
    while True:
        threading.Event().wait()


def spin_as_asked():
    while True:
        pass


def meet(step):
    """Wait until every rank of the attempt is in this step: each appends a byte to its own file."""
    with (gang / str(rank)).open("ab") as mine:
        mine.write(b"x")
    for peer in range(ranks):
        while not arrived(peer, step - start):
            time.sleep(0.002)


def arrived(peer, steps):
    try:
        return (gang / str(peer)).stat().st_size >= steps
    except FileNotFoundError:
        return False


def sample(step):
    """One sample a step; the plan passes some over."""
    return step - 1 + sum(count for after, count in plan.get("skippedBatches", []) if after < step)


def save(step):
    (folder / f"number-{attempt}-{step}").write_text(str(step))
    tell("checkpoint", state="committed", attempt=attempt, step=step)


start = 0
if os.environ["MARIN_SUP_RESUME"] != "none":
    parent, start = map(int, os.environ["MARIN_SUP_RESUME"].split(":"))
    assert (folder / f"number-{parent}-{start}").read_text() == str(start)
faults = requests()["chaos"]
happened = {kind: faults.get(kind, 0) for kind in ("hang", "spin")}
tell("phase", phase="train")

saves = 0
for step in range(start + 1, options.steps + 1):
    began, faults = time.monotonic(), requests()["chaos"]
    if faults.get("spin", 0) > happened["spin"]:
        spin_as_asked()
    time.sleep(faults.get("slowMs", 0) / 1000)
    time.sleep(60 if step == options.long_step else options.step_seconds)
    for _ in range(options.garbage):
        for absurd in ("1" * 30, "1" * 5000, str(2**62), "-5", "1e999", '"1"'):
            os.write(
                EVENTS, b'{"event": "checkpoint", "state": "committed", "attempt": 1, "step": %s}\n' % absurd.encode()
            )
            os.write(EVENTS, b'{"event": "step", "state": "completed", "step": %s}\n' % absurd.encode())
        os.write(EVENTS, b'{"event": "step", "step": \xff\x00 oops\n')
        os.write(EVENTS, b'{"event": "who knows"}\n[1, 2]\nnull\n' + b"x" * 2000 + b"\n")
    if options.stale:
        tell("checkpoint", state="committed", attempt=attempt + 7, step=step)
    own = time.monotonic() - began
    tell("step", step=step, state="entered")
    if faults.get("hang", 0) > happened["hang"]:
        hang_as_asked()
    meet(step)
    metrics = {"sampleFirst": sample(step), "sampleCount": 1}
    tell("step", step=step, state="completed", loss=1.0 / step, tokens=10, ownSeconds=own, metrics=metrics)
    control = requests()
    if control["fail"]:
        raise RuntimeError("failed on request")
    if control["stop"] or control["save"] > saves or step % options.save_every == 0 or step == options.steps:
        saves = control["save"]
        save(step)
    if control["stop"]:
        sys.exit(75)
if options.alarm and attempt == 1:
    tell("alarm", kind=options.alarm, message="as its arguments say")
    sys.exit(options.exit)
sys.exit(options.exit)
