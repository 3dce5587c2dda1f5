"""YAML of plain values by the rules of version 1.2: `on` is a name, 1e-4 a number, a date text."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

PLAIN = {
    "null": (r"~|null|Null|NULL", "~nN"),
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "int": (r"[-+]?(?:0|[1-9][0-9]*)|0x[0-9a-fA-F]+", "-+0123456789"),
    "float": (
        r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
}
"""Types of a plain word besides text: their pattern, and the characters that such a word can begin with."""


TOO_DEEP = "nested too deeply"
MOST_DEEP = 40
"""Upper limit for lists and mappings in each other."""


class _Loader(yaml.SafeLoader):
    """Loader that knows only the plain words above and refuses duplicate keys, of which YAML keeps only the last.

    It also refuses deep nesting, which PyYAML reads in quadratic time.
    """

    depth = 0

    def fetch_flow_collection_start(self, token: Any) -> None:
        if self.flow_level >= MOST_DEEP:  # the scanner reads ahead of the composer
            raise yaml.scanner.ScannerError(None, None, TOO_DEEP, self.get_mark())
        super().fetch_flow_collection_start(token)

    def compose_node(self, parent: Any, index: Any) -> yaml.Node | None:
        if self.depth > MOST_DEEP:
            raise yaml.composer.ComposerError(None, None, TOO_DEEP, self.peek_event().start_mark)
        self.depth += 1
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen = set[tuple[str, str]]()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    raise yaml.composer.ComposerError(None, None, f"{key.value} is set twice", key.start_mark)
                seen.add((key.tag, key.value))
        return node


_Loader.yaml_implicit_resolvers = {}


class _Dumper(yaml.SafeDumper):
    """Dumper that quotes text which YAML 1.1 or 1.2 would read as another type."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    breaks = any(character in text for character in "\x85\u2028\u2029")  # ends of lines in YAML 1.1
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if breaks else None)


_Dumper.add_representer(str, _text)

for _name, (_pattern, _first) in PLAIN.items():
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", re.compile(f"^(?:{_pattern})$"), [*_first])
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile("^$"), [""])
_Loader.add_implicit_resolver("tag:yaml.org,2002:merge", re.compile("^<<$"), ["<"])


def parse_yaml(text: str) -> Any:
    """Return the values of a YAML text, None if it is empty. Raises a one-line ValueError if it is not plain YAML."""
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise ValueError(f"is not plain YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ValueError("is not plain YAML: nested too deeply") from None
    except Exception as error:  # PyYAML builds values such as !!bool foo without checking their text
        raise ValueError(f"is not plain YAML: {type(error).__name__} in a value") from None


def load_yaml(path: str | Path) -> Any:
    """Return the values of a YAML file, {} if it is empty. Raises a one-line ValueError if the file is unreadable."""
    try:
        content = parse_yaml(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not text in UTF-8") from None
    except ValueError as error:
        raise ValueError(f"{path} {error}") from None
    return {} if content is None else content


def dump_yaml(values: Mapping[str, Any]) -> str:
    """Return plain values as YAML that versions 1.1 and 1.2 read alike, with keys in their order."""
    return yaml.dump(dict(values), Dumper=_Dumper, sort_keys=False, allow_unicode=True)
