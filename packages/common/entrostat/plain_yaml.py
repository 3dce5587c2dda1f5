"""YAML of plain values, read as people mean it, which is version 1.2: `on` is a name, 1e-4 a number, a date text."""

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
"""What a plain word can be besides text, and the characters that it can begin with."""


class _Loader(yaml.SafeLoader):
    """Knows no plain words but those above, and takes no key twice, of which all but the last would be lost."""

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
    """Quotes what either version of YAML would not read as text."""


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
    """The values of a YAML text, None of an empty one. ValueError, one line, where it is not YAML of plain values."""
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise ValueError(f"is not plain YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ValueError("is not plain YAML: nested too deeply") from None
    except Exception as error:  # PyYAML makes values without a look at their text, such as !!bool foo
        raise ValueError(f"is not plain YAML: {type(error).__name__} in a value") from None


def load_yaml(path: str | Path) -> Any:
    """The values of a YAML file, {} of an empty one. ValueError, one line, naming the file that cannot be read."""
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
    """Plain values as YAML that versions 1.1 and 1.2 read alike, keys in their order."""
    return yaml.dump(dict(values), Dumper=_Dumper, sort_keys=False, allow_unicode=True)
