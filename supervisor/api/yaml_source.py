"""YAML text to plain data: one document, text keys, no duplicates, no surprises, bounded in depth and size.

Works on the parser's events, which construct no objects, so no tag can run anything and no nest of aliases can grow
beyond the bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

from supervisor.api.mistakes import BadManifest, Location, Mistake
from supervisor.api.scalars import Ambiguous, resolve
from supervisor.api.words import escaped, found

MAX_DEPTH = 64
MAX_VALUES = 50_000  # after aliases are expanded; a large manifest has some hundreds
_STANDARD = "tag:yaml.org,2002:"

Data = dict[str, "Data"] | list["Data"] | str | int | float | bool | None


@dataclass(slots=True)
class Source:
    """A document as data, the line of each of its values, and the mistakes that reading it showed.

    At each place in `unreadable`, null stands for a value that had a mistake of its own.
    """

    data: Data = None
    lines: dict[Location, int] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    unreadable: set[Location] = field(default_factory=set)


def read_yaml(text: str) -> Source:
    """Read the one document in `text`.

    Mistakes in single values are recorded in the result. Raises `BadManifest` where nothing can be read: bad syntax
    (with line and column), no document, several, or bounds exceeded.
    """
    try:
        root = _Tree(text).root()
    except yaml.MarkedYAMLError as error:
        raise _syntax(error) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _no_manifest(
            f"line {line}: found the character {error.character:#x}, allowed printable text", line
        ) from None
    source = Source()
    try:
        source.data = _Conversion(source).value(root, ())
    except Ambiguous as ambiguous:
        raise _no_manifest(str(ambiguous), root.line) from None
    return source


def _no_manifest(text: str, line: int = 0) -> BadManifest:
    return BadManifest([Mistake((), text, line)])


def _syntax(error: yaml.MarkedYAMLError) -> BadManifest:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
    # PyYAML has escaped what it quotes from the file.
    problem = escaped(error.problem or error.context or "cannot be read", 200).replace("\\\\", "\\")
    advice = "; indent with spaces" if "'\\t'" in (error.problem or "") else ""
    return _no_manifest(f"line {line}, column {column}: not valid YAML: {problem}{advice}", line)


@dataclass(slots=True)
class _Node:
    """A value as written. `items` are a sequence's nodes, or a mapping's keys and values in turn."""

    event: yaml.ScalarEvent | yaml.CollectionStartEvent
    items: list[_Node] = field(default_factory=list)

    @property
    def line(self) -> int:
        return _line(self.event)


def _line(event: yaml.Event) -> int:
    """Counted from 1; 0 for an event without a place."""
    return event.start_mark.line + 1 if event.start_mark else 0


class _Tree:
    """The events of one document as nodes; an alias is the node that it names."""

    def __init__(self, text: str) -> None:
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=yaml.SafeLoader)
        self._anchors: dict[str, _Node] = {}

    def root(self) -> _Node:
        next(self._events)  # the start of the stream
        if not isinstance(next(self._events), yaml.DocumentStartEvent):
            raise _no_manifest("the file is empty, allowed a TrainingRun")
        root = self._node(next(self._events), 0)
        next(self._events)  # the end of the document
        following = next(self._events)
        if isinstance(following, yaml.DocumentStartEvent):
            line = _line(following)
            text = f"found a second document at line {line}, allowed one TrainingRun a file; split the file"
            raise _no_manifest(text, line)
        return root

    def _node(self, event: yaml.Event, depth: int) -> _Node:
        if depth > MAX_DEPTH:
            raise _no_manifest(f"line {_line(event)}: nested too deep, allowed {MAX_DEPTH} levels", _line(event))
        if isinstance(event, yaml.AliasEvent):
            return self._named(event)
        if not isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
            raise TypeError(f"no value starts with {event}")
        node = _Node(event)
        while isinstance(event, yaml.CollectionStartEvent):
            item = next(self._events)
            if isinstance(item, yaml.CollectionEndEvent):
                break
            node.items.append(self._node(item, depth + 1))
        # An anchor names its node only once that is complete, so nothing can contain itself.
        if node.event.anchor is not None:
            self._anchors[node.event.anchor] = node
        return node

    def _named(self, alias: yaml.AliasEvent) -> _Node:
        name = alias.anchor or ""
        if name not in self._anchors:
            text = f"found the alias *{escaped(name)}, but no complete value before it has that name"
            raise _no_manifest(f"line {_line(alias)}: {text}", _line(alias))
        return self._anchors[name]


class _Conversion:
    """Nodes to data, noting the values that have a mistake of their own."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._values = 0

    def value(self, node: _Node, at: Location) -> Data:
        """The data of `node`, which stands at `at`. Raises `Ambiguous` for what cannot be one value for everybody."""
        self._values += 1
        if self._values > MAX_VALUES or len(at) > MAX_DEPTH:
            raise _no_manifest(f"too much data once aliases are written out, allowed {MAX_VALUES} values")
        self._source.lines[at] = node.line
        match node.event:
            case yaml.ScalarEvent():
                return _scalar(node.event)
            case yaml.SequenceStartEvent(tag=tag):
                _standard(tag, "seq")
                return [self._readable(item, (*at, index)) for index, item in enumerate(node.items)]
            case yaml.CollectionStartEvent(tag=tag):
                _standard(tag, "map")
                return self._mapping(node, at)

    def _mapping(self, node: _Node, at: Location) -> dict[str, Data]:
        data: dict[str, Data] = {}
        first_lines: dict[str, int] = {}
        for key_node, value_node in zip(node.items[::2], node.items[1::2], strict=True):
            key = self._key(key_node, at)
            if key is None:
                continue
            if key in first_lines:
                text = f"found twice, on lines {first_lines[key]} and {key_node.line}, allowed once"
                self._note((*at, key), text, key_node.line)
                continue
            first_lines[key] = key_node.line
            data[key] = self._readable(value_node, (*at, key))
            self._source.lines[(*at, key)] = key_node.line
        return data

    def _key(self, node: _Node, at: Location) -> str | None:
        """The key, or None after a mistake."""
        if not isinstance(node.event, yaml.ScalarEvent):
            self._note(at, "found a list or mapping as a key, allowed text", node.line)
            return None
        try:
            key = _scalar(node.event)
        except Ambiguous as ambiguous:
            self._note(at, f"a key: {ambiguous}", node.line)
            return None
        if key == "<<" and node.event.implicit[0]:
            self._note(at, "found a merge key (<<), allowed only fields written out", node.line)
            return None
        if not isinstance(key, str):
            self._note(at, f"found {found(key)} as a key, allowed text; write it in quotes", node.line)
            return None
        return key

    def _readable(self, node: _Node, at: Location) -> Data:
        """The value, or null after a mistake, so that what follows is still read."""
        try:
            return self.value(node, at)
        except Ambiguous as ambiguous:
            self._note(at, str(ambiguous), node.line)
            self._source.unreadable.add(at)
            return None

    def _note(self, at: Location, text: str, line: int) -> None:
        self._source.mistakes.append(Mistake(at, text, line))


_TYPES: dict[str, type] = {"int": int, "float": float, "bool": bool, "null": type(None)}


def _scalar(event: yaml.ScalarEvent) -> Data:
    if any("\ud800" <= character <= "\udfff" for character in event.value):
        raise Ambiguous("found half of a surrogate pair, allowed whole characters")
    if event.tag is None or event.tag == "!":
        return resolve(event.value) if event.implicit[0] else str(event.value)
    _standard(event.tag, "str", *_TYPES)
    if event.tag == f"{_STANDARD}str":
        return str(event.value)
    value = resolve(event.value)
    if _TYPES[event.tag.removeprefix(_STANDARD)] is not type(value):
        raise Ambiguous(f"found {found(event.value)} marked as {escaped(event.tag)}, which it is not")
    return value


def _standard(tag: str | None, *names: str) -> None:
    if tag is not None and tag not in ("!", *(_STANDARD + name for name in names)):
        raise Ambiguous(f"found the YAML tag {escaped(tag)}, allowed plain values without tags")
