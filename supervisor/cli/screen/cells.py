"""The fleet as cells: one letter and one colour per node, a row per rack."""

from __future__ import annotations

from rich.text import Text

from supervisor.core.node_states import NodeStates
from supervisor.wire.text import printable

# state of core.node_states -> letter and style; the letter alone says it where there is no colour
CELLS: dict[str, tuple[str, str]] = {
    "training": ("T", "bold green"),
    "spare": ("s", "cyan"),
    "starting": (".", "yellow"),
    "lost": ("?", "bold yellow"),
    "set-aside": ("!", "bold magenta"),
    "dead": ("x", "bold red"),
}
MAX_RACKS = 16  # rows; a larger fleet shows those with something to see first


def fleet_cells(states: NodeStates, width: int) -> Text:
    """Racks side by side as far as they fit into `width`, and a legend of the states that occur."""
    racks: dict[str, list[str]] = {}
    for _, rack, state in states:
        racks.setdefault(rack, []).append(state)
    shown = sorted(racks, key=lambda rack: ("dead" not in racks[rack], list(racks).index(rack)))[:MAX_RACKS]
    shown.sort(key=list(racks).index)
    blocks = [_rack(rack, racks[rack]) for rack in shown]
    text, used = Text(), 0
    for block in blocks:
        if used and used + 4 + block.cell_len > width:
            text.append("\n")
            used = 0
        if used:
            text.append("    ")
            used += 4
        text.append_text(block)
        used += block.cell_len
    if len(shown) < len(racks):
        text.append(f"\nand {len(racks) - len(shown)} more racks")
    return text


def legend(states: NodeStates) -> Text:
    present = {state for _, _, state in states}
    text = Text()
    for state, (letter, style) in CELLS.items():
        if state in present:
            text.append("  " if text else "")
            text.append(letter, style)
            text.append(f" {state.replace('-', ' ')}", "dim")
    return text


def _rack(rack: str, states: list[str]) -> Text:
    text = Text(f"{printable(rack, 20)} ")
    for state in states:
        letter, style = CELLS.get(state, ("?", "bold yellow"))
        text.append(f" {letter}", style)
    return text
