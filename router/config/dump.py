"""Values back to YAML text that reads as the same values: `false`, `0`, `null` and absent stay four things."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from router.config.scalars import NULL, resolve


class _Dumper(yaml.SafeDumper):
    """PyYAML's, with the YAML 1.2 core schema deciding what needs quotes."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def text(self, value: str) -> yaml.ScalarNode:
        """A string, quoted when it would otherwise read as something else."""
        style = None if isinstance(resolve(value), str) else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _Dumper.text)


def dump(value: Mapping[str, Any]) -> str:
    """YAML of a mapping of plain values (`Document.value`): parsing the result gives equal values."""
    return yaml.dump(_plain(value), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is NULL:
        return None
    return value.replace("${", "$${") if isinstance(value, str) else value
