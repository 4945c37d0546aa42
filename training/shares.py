"""How a global batch is shared out: rows of each rank, and the microbatches they are computed in. Pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

from training.config import Data


@dataclass(frozen=True, slots=True)
class Shares:
    """Every rank computes `microbatches` x `rows` rows; those beyond its own share are padding with weight zero."""

    global_batch: int
    ranks: int
    microbatches: int
    rows: int  # of one microbatch

    def of(self, rank: int) -> range:
        """The rows of the global batch that `rank` owns; shares differ by at most one row."""
        return range(rank * self.global_batch // self.ranks, (rank + 1) * self.global_batch // self.ranks)


def share_out(data: Data, ranks: int) -> Shares:
    """Split `data.global_batch` rows over `ranks`, in the fewest microbatches of at most `data.rows_per_microbatch`
    rows.
    """
    largest = -(-data.global_batch // ranks)
    microbatches = -(-largest // data.rows_per_microbatch)
    return Shares(data.global_batch, ranks, microbatches, -(-largest // microbatches))
