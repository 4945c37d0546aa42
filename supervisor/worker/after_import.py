"""Run something right after a module was imported, whenever that is, without importing it now."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


def after_import(name: str, action: Callable[[], None]) -> None:
    """Call `action` once: now if module `name` is there already, else when its import has just finished."""
    if name in sys.modules:
        action()
        return
    sys.meta_path.insert(0, _Finder(name, action))


class _Finder(MetaPathFinder):
    def __init__(self, name: str, action: Callable[[], None]) -> None:
        self._name = name
        self._action = action

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._action)
        return spec


class _Loader(Loader):
    """The module's own loader, followed by the action. The module is left as if we had not been there."""

    def __init__(self, loader: Loader, action: Callable[[], None]) -> None:
        self._loader = loader
        self._action = action

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._action()
