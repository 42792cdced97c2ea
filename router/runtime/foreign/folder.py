"""The files of a directory that came without a card: configuration, special tokens, which graph to use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

from router.runtime.errors import ArtifactError

GRAPHS = (
    "model.onnx",
    "onnx/model.onnx",
    "model/model.onnx",
    "model_fp16.onnx",
    "onnx/model_fp16.onnx",
)
"""Where a graph is looked for, in this order. Quantised ones are not among them: their answers depend on the batch."""

POOLING = "1_Pooling/config.json"
"""How a `sentence-transformers` model makes one vector of its tokens' states."""

HUB_FOLDER = re.compile(r"(?P<owner>[^/]+)--(?P<name>[^/]+)\Z")
_COMMIT = re.compile(r"[0-9a-f]{40}\Z")
_LICENCE = re.compile(r"^licen[cs]e:\s*[\"']?([\w.\-]+)", re.MULTILINE | re.IGNORECASE)
_USUAL: Mapping[str, tuple[str, ...]] = {
    "cls": ("[CLS]", "<s>", "<bos>", "<cls>"),
    "sep": ("[SEP]", "</s>", "<eos>", "<sep>"),
    "pad": ("[PAD]", "<pad>"),
    "mask": ("[MASK]", "<mask>"),
}
_NAMED: Mapping[str, tuple[str, ...]] = {
    "cls": ("cls_token", "bos_token"),
    "sep": ("sep_token", "eos_token"),
    "pad": ("pad_token",),
    "mask": ("mask_token",),
}


def pick_graph(names: Iterable[str]) -> str | None:
    """The graph to use of these files: a well-known name, else the only one. None when that does not decide."""
    graphs = sorted(name for name in names if name.endswith(".onnx"))
    for known in GRAPHS:
        if known in graphs:
            return known
    return graphs[0] if len(graphs) == 1 else None


class Folder:
    """A directory being read. Files are read once; what is missing is said by name."""

    def __init__(self, path: Path, written: Mapping[str, Any]) -> None:
        """`written` is the content of a partial `decision.json` beside the files."""
        self.path = path
        self._written = written
        self._files: dict[str, dict[str, Any]] = {}

    @property
    def name(self) -> str:
        """The model's name: that of the hub where the directory came from one, else the directory's."""
        for part in (place.name for place in (self.path, *self.path.parents[:2])):
            if match := HUB_FOLDER.match(part.removeprefix("models--")):
                return match["name"]
        return self.path.name

    @property
    def revision(self) -> str:
        """The commit that a hub's snapshot is of, else `unversioned`."""
        return self.path.name if _COMMIT.match(self.path.name) else "unversioned"

    @property
    def licence(self) -> str:
        """What the model page declares, else `unknown`."""
        try:
            head = (self.path / "README.md").read_text("utf-8")[:4096]
        except (OSError, UnicodeDecodeError):
            return "unknown"
        match = _LICENCE.search(head) if head.startswith("---") else None
        return match[1] if match else "unknown"

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return (self.path / name).is_file()

    def read(self, name: str) -> dict[str, Any]:
        """A JSON object. Raises ArtifactError."""
        if name not in self._files:
            try:
                data = orjson.loads((self.path / name).read_bytes())
            except OSError as error:
                raise ArtifactError(str(self.path / name), f"cannot be read: {error.strerror}") from None
            except ValueError:
                raise ArtifactError(str(self.path / name), "is not JSON") from None
            if not isinstance(data, dict):
                raise ArtifactError(str(self.path / name), "must be an object")
            self._files[name] = data
        return self._files[name]

    def modules(self, name: str) -> list[str]:
        """The `type` of every entry of a JSON list. Raises ArtifactError."""
        try:
            listed = orjson.loads((self.path / name).read_bytes())
            return [str(entry["type"]) for entry in listed]
        except (OSError, ValueError, TypeError, KeyError):
            raise ArtifactError(str(self.path / name), "is not a list of modules") from None

    def maybe(self, name: str) -> dict[str, Any]:
        """A JSON object, empty when there is no such file."""
        return self.read(name) if self.has(name) else {}

    def whole(self, name: str, key: str, default: int | None = None) -> int:
        """A whole number above 0 of a file. Raises ArtifactError naming file and key."""
        value = self.read(name).get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self.fail(name, key, "missing" if value is None else "must be a whole number above 0")
        return value

    def fail(self, name: str, key: str, message: str) -> ArtifactError:
        """An error at a key of a file."""
        return ArtifactError(f"{self.path / name}: {key}", message)

    @cached_property
    def graph(self) -> str:
        """The graph's file. Raises ArtifactError."""
        written = self._written.get("graphs", {})
        named = written.get("encoder", {}).get("file") if isinstance(written, dict) else None
        if isinstance(named, str):
            return named
        names = [path.relative_to(self.path).as_posix() for path in self.path.rglob("*.onnx")]
        found = pick_graph(names)
        if found is None:
            what = f"holds {', '.join(sorted(names))}: say which in decision.json, graphs.encoder.file"
            raise ArtifactError(str(self.path), what if names else "holds no ONNX graph")
        return found

    # -- tokens --------------------------------------------------------------------------------------------------------

    def special(self, role: str) -> int | None:
        """The id of the `cls`, `sep`, `pad` or `mask` token; None when the tokenizer has none."""
        named = [self._named(key) for key in _NAMED[role]]
        for text in [*(name for name in named if name is not None), *_USUAL[role]]:
            found = self.token_id(text)
            if found is not None:
                return found
        return None

    def token_id(self, text: str) -> int | None:
        """The id of a token by its exact text."""
        added = self._added.get(text)
        return added[0] if added is not None else self._vocabulary.get(text)

    def needed(self, what: str, ident: int | None) -> int:
        """`ident`, or the error that the tokenizer lacks it. Raises ArtifactError."""
        if ident is None:
            raise ArtifactError(str(self.path / "tokenizer.json"), f"has no {what} token")
        return ident

    def tokens(self) -> dict[str, Any]:
        """The card's `tokens`."""
        roles = {role: self.special(role) for role in ("cls", "sep", "mask")}
        framed = {role: ident for role, ident in roles.items() if ident is not None}
        pad = self.special("pad")
        return {"pad": 0 if pad is None else pad, **framed, "forbidden_in_text": self.forbidden}

    @cached_property
    def forbidden(self) -> list[str]:
        """Texts that user text must never spell: all special tokens, and all that were added to mark something."""
        return sorted(text for text, (_, special) in self._added.items() if special or _is_marker(text))

    @cached_property
    def _added(self) -> dict[str, tuple[int, bool]]:
        listed = self.read("tokenizer.json").get("added_tokens") or []
        tokens = [token for token in listed if isinstance(token, dict) and isinstance(token.get("id"), int)]
        return {str(token.get("content")): (token["id"], bool(token.get("special"))) for token in tokens}

    @cached_property
    def _vocabulary(self) -> Mapping[str, int]:
        model = self.read("tokenizer.json").get("model")
        vocabulary = model.get("vocab") if isinstance(model, dict) else None
        if isinstance(vocabulary, dict):
            return vocabulary
        pieces = vocabulary if isinstance(vocabulary, list) else []
        return {str(piece[0]): place for place, piece in enumerate(pieces) if isinstance(piece, list) and piece}

    def _named(self, key: str) -> str | None:
        for name in ("tokenizer_config.json", "special_tokens_map.json"):
            value = self.maybe(name).get(key)
            text = value.get("content") if isinstance(value, dict) else value
            if isinstance(text, str):
                return text
        return None

    # -- lengths -------------------------------------------------------------------------------------------------------

    @property
    def graph_tokens(self) -> int:
        """The longest row that the model was built for, 512 where nothing says."""
        config = self.maybe("config.json")
        found = []
        positions = config.get("max_position_embeddings")
        if isinstance(positions, int) and positions > 0:
            # RoBERTa's kin count positions from the padding id on.
            shifted = str(config.get("model_type", "")).endswith("roberta") or config.get("model_type") == "camembert"
            found.append(positions - 2 if shifted else positions)
        longest = self.maybe("tokenizer_config.json").get("model_max_length")
        if isinstance(longest, int) and 0 < longest < 1_000_000:
            found.append(longest)
        return max(8, min(found, default=512))


def _is_marker(text: str) -> bool:
    return (text.startswith("<<") and text.endswith(">>")) or (text.startswith("[") and text.endswith("]"))


def floats(name: str, shape: list[int | str]) -> dict[str, Any]:
    """An output of logits, in single or half precision."""
    return {"name": name, "type": "tensor(float)|tensor(float16)", "shape": shape}


def integers(name: str, shape: list[int | str], *, optional: bool = False) -> dict[str, Any]:
    """An input of ids, masks or places."""
    tensor: dict[str, Any] = {"name": name, "type": "tensor(int64)|tensor(int32)", "shape": shape}
    return {**tensor, "optional": True} if optional else tensor


def encoder(graph: str, inputs: list[dict[str, Any]], output: dict[str, Any]) -> dict[str, Any]:
    """The card's `graphs` of one graph over token ids."""
    ids = [integers("input_ids", ["batch", "seq"]), integers("attention_mask", ["batch", "seq"])]
    types = integers("token_type_ids", ["batch", "seq"], optional=True)
    return {"encoder": {"file": graph, "inputs": [*ids, types, *inputs], "outputs": [output]}}


def long_reading(graph_tokens: int, head: int) -> dict[str, Any]:
    """The card's `reading`: windows as long as a row leaves beside `head` tokens, sharing an eighth."""
    room = max(4, graph_tokens - head - 2)
    return {"state_once": False, "long": "window", "window": {"tokens": room, "overlap": room // 8}}


MOST_INPUT_TOKENS = 32_768
"""How much of a long text is read in windows where a contract's files do not say."""
