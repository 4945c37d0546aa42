"""One rank of an equal-sized PyTorch model on gloo and CPU, for the launchers of others: a step of about 0.1 s, a
checkpoint every 5 steps. Run by the interpreter of `.bench-venv`: `peer_torch.py FOLDER torchrun|nvrx|torchft`.

Each completed step is a line in FOLDER/rank-N.jsonl: {time, step, incarnation}.
"""

import datetime
import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

FOLDER, LAUNCHER = Path(sys.argv[1]), sys.argv[2]
SAVE_EVERY, VOCABULARY, WIDTH, LAYERS, HIDDEN, ROWS, SEQUENCE = 5, 256, 96, 2, 666, 4, 64
STEP_SECONDS = 0.1  # as long as a step of our trainer takes; less than that is slept
HANDSHAKE = datetime.timedelta(seconds=30)
QUORUM = datetime.timedelta(seconds=5)  # torchft waits this long for a peer that is gone; its default is a minute


class Model(nn.Module):
    """As many parameters as tests/bench/trainer.yaml has: 0.38 million."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, HIDDEN, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, LAYERS)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.body(self.embed(tokens)))


def loss_of(model, step, rank):
    chance = torch.Generator().manual_seed(step * 1000 + rank)
    tokens = torch.randint(VOCABULARY, (ROWS, SEQUENCE + 1), generator=chance)
    return nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


class Told:
    """The lines that the benchmark reads. Kept open: it is how the rank's process is found."""

    def __init__(self, rank):
        self._file = (FOLDER / f"rank-{rank}.jsonl").open("a", buffering=1)

    def completed(self, step, incarnation, began):
        time.sleep(max(0.0, began + STEP_SECONDS - time.monotonic()))
        self._file.write(json.dumps({"time": time.time(), "step": step, "incarnation": incarnation}) + "\n")


def save(model, optimizer, step):
    temporary = FOLDER / "checkpoint.new"
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, temporary)
    temporary.rename(FOLDER / "checkpoint")


def gang():
    """All ranks leave and come back together; the launcher starts them."""
    dist.init_process_group("gloo", timeout=HANDSHAKE)
    rank, size = dist.get_rank(), dist.get_world_size()
    told, incarnation = Told(rank), int(os.environ["TORCHELASTIC_RESTART_COUNT"]) + 1
    beat = heartbeat() if LAUNCHER == "nvrx" else lambda: None
    model, start = Model(), 0
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    if (FOLDER / "checkpoint").exists():
        kept = torch.load(FOLDER / "checkpoint")
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        start = kept["step"]
    model = nn.parallel.DistributedDataParallel(model)
    for step in range(start + 1, 100_000):
        began = time.monotonic()
        optimizer.zero_grad()
        loss_of(model, step, rank).backward()
        optimizer.step()
        told.completed(step, incarnation, began)
        beat()
        if step % SAVE_EVERY == 0 and rank == 0:
            save(model.module, optimizer, step)
    assert size > 1


def heartbeat():
    from nvidia_resiliency_ext.fault_tolerance import RankMonitorClient

    client = RankMonitorClient()
    client.init_workload_monitoring()
    client.send_heartbeat()
    return client.send_heartbeat


def replica():
    """torchft: each rank is a replica group of its own; those that live go on without the dead one."""
    from torchft import DistributedDataParallel, Manager, Optimizer, ProcessGroupGloo

    replica_id = int(os.environ["REPLICA"])
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    told, model = Told(replica_id), Model()
    plain = torch.optim.AdamW(model.parameters(), 1e-3)
    manager = Manager(
        pg=ProcessGroupGloo(timeout=QUORUM),
        min_replica_size=2,
        load_state_dict=lambda kept: (model.load_state_dict(kept["model"]), plain.load_state_dict(kept["optimizer"])),
        state_dict=lambda: {"model": model.state_dict(), "optimizer": plain.state_dict()},
        replica_id=f"replica{replica_id}",
        store_addr="127.0.0.1",
        store_port=store.port,
        rank=0,
        world_size=1,
        timeout=QUORUM,
        hostname="127.0.0.1",
    )
    wrapped, optimizer = DistributedDataParallel(manager, model), Optimizer(manager, plain)
    while True:
        began, before = time.monotonic(), manager.current_step()
        optimizer.zero_grad()
        loss_of(wrapped, before + 1, replica_id).backward()
        optimizer.step()
        if manager.current_step() > before:
            told.completed(manager.current_step(), manager._quorum_id, began)
            if manager.current_step() % SAVE_EVERY == 0 and manager.participating_rank() == 0:
                save(model, plain, manager.current_step())


torch.set_num_threads(1)
replica() if LAUNCHER == "torchft" else gang()
