"""A name for every array of the state. Orbax sees a flat table of names, so its own tree metadata never matters."""

from __future__ import annotations

import re
from typing import Any

import jax

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,199}")  # a directory of its own on every file system


def by_name(state: Any) -> dict[str, Any]:
    """The leaves of a pytree by their path, such as `parameters.layers.0.router`, in the pytree's order.

    Raises ValueError where a path is no usable name or two paths share one.
    """
    named: dict[str, Any] = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(state)[0]:
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"the state has a leaf at {name!r}; use letters, digits, '_', '-' and at most 200 characters"
            )
        if name in named:
            raise ValueError(f"the state has two leaves named {name!r}; rename one")
        named[name] = leaf
    if not named:
        raise ValueError("the state has no arrays to save or restore")
    return named


def like_tree(named: dict[str, Any], like: Any) -> Any:
    """The pytree of `like` with the values of `named`, which has the names of `by_name(like)`."""
    return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(like), [named[name] for name in by_name(like)])
