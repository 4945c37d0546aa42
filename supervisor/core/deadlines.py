"""How long a phase may stand still before it is suspected: learned from what this run has shown, within limits."""

from __future__ import annotations

from statistics import median

from supervisor.core.memory import Shown
from supervisor.core.spec import Deadlines, Limits

STEP, FIRST_STEP = "step", "first step"
KEPT = 256  # silences remembered per phase: what comes once in a hundred steps should be among them
# A step is suspected after 4 typical silences, and after half as much again as the longest of late; 16.9 s steps of
# which those during a save take 20.6 s give 68 to 83 s, where operators wait 15 minutes today. The other phases come
# once an attempt and differ more (a cold file cache, a first compilation), so they get more of their longest.
TYPICAL, LONGEST = 4.0, 1.5
LONGEST_OF_A_PHASE = 3.0
LEARNED_FROM = 5  # silences of steps; fewer say too little
CONFIRM = 4.0  # what is suspected is taken for certain after this many deadlines, unless evidence settles it before


def deadline_ms(phase: str, shown: tuple[Shown, ...], deadlines: Deadlines) -> int:
    """The silence after which `phase` is suspected to hang, in milliseconds."""
    limits = limits_of(phase, deadlines)
    silences = next((one.silences for one in shown if one.phase == phase), ())
    if len(silences) < (LEARNED_FROM if phase == STEP else 1):
        return limits.ceiling_ms
    if phase == STEP:
        learned = max(TYPICAL * median(silences), LONGEST * max(silences))
    else:
        learned = LONGEST_OF_A_PHASE * max(silences)
    return round(min(max(learned, limits.floor_ms), limits.ceiling_ms))


def confirm_ms(phase: str, shown: tuple[Shown, ...], deadlines: Deadlines) -> int:
    """The silence after which a hang is certain, whatever the evidence."""
    return round(CONFIRM * deadline_ms(phase, shown, deadlines))


def learned(shown: tuple[Shown, ...], phase: str, silence_ms: int) -> tuple[Shown, ...]:
    """With one more silence that turned out to be none of a hang."""
    before = next((one.silences for one in shown if one.phase == phase), ())
    others = tuple(one for one in shown if one.phase != phase)
    return (*others, Shown(phase, (*before, max(0, silence_ms))[-KEPT:]))


def limits_of(phase: str, deadlines: Deadlines) -> Limits:
    """`phase` as the trainer contract names it, or "step" and "first step"."""
    known = {
        "": deadlines.importing,
        "import": deadlines.importing,
        "init": deadlines.init,
        "restore": deadlines.restore,
        "compile": deadlines.compiling,
        FIRST_STEP: deadlines.first_step,
        STEP: deadlines.step,
        "save": deadlines.save,
        "eval": deadlines.evaluation,
        "exit": deadlines.exit,
    }
    return known[phase]
