"""The decision models: declared deployments, the embedded one, and what each can be asked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path as FilePath

from router.config.compiler.context import Context, Names
from router.config.compiler.endpoints import (
    addresses,
    check_deployment,
    dialect_of,
    is_remote,
    key_source,
    written_capabilities,
)
from router.config.compiler.sizes import check_sizes, written_sizes
from router.config.deployments import Deployment
from router.config.model import globals as dialect
from router.config.problems import Path
from router.config.sizes import WrittenSizes
from router.questions import Capabilities

BUILTIN = "builtin"
CATALOGUE: Path = ("global", "model_catalog")


class Catalogue:
    """Deployments by name. A model is described when the first rule asks for it, and only once."""

    def __init__(self, context: Context, model_catalog: dialect.ModelCatalog | None) -> None:
        self.context = context
        self.names: Names[dialect.Deployment | None] = Names("deployment")
        self.described: dict[str, Deployment | None] = {}
        declared = context.document.value.get("global")
        for part in ("model_catalog", "deployments"):
            declared = declared.get(part) if isinstance(declared, dict) else declared
        if isinstance(declared, dict):
            self.names.ghosts.update(declared)
        elif declared is not None:
            self.names.open = True
        self.deployments = model_catalog.deployments if model_catalog else {}
        for name, deployment in self.deployments.items():
            self.names.known[name] = deployment
        self.names.known.setdefault(BUILTIN, None)
        self.default = self._default(model_catalog)

    def _default(self, model_catalog: dialect.ModelCatalog | None) -> str | None:
        """The deployment of rules that name none; None when the binding is wrong."""
        system = model_catalog.system if model_catalog else None
        path = (*CATALOGUE, "system", "decision_model")
        if system is None or system.decision_model is None:
            return None if self.context.is_cut(path) else BUILTIN
        if isinstance(system.decision_model, dialect.Binding):
            name, path = system.decision_model.deployment, (*path, "deployment")
        else:
            name = system.decision_model
        if name in self.names.known:
            return name
        self.names.find(self.context, name, path)
        return None

    def check(self) -> None:
        """What is wrong with a deployment by itself, asked or not."""
        for deployment in self.deployments.values():
            check_deployment(self.context, deployment)
            check_sizes(self.context, deployment)

    def find(self, name: str | None, path: Path) -> Deployment | None:
        """The deployment that a rule asks, described; None when it cannot be had (reported once)."""
        if name is None:
            name = self.default
            if name is None:
                return None
        if name not in self.names.known:
            self.names.find(self.context, name, path)
            return None
        if name not in self.described:
            self.described[name] = self._describe(name, self.names.known[name])
        return self.described[name]

    def only(self, names: Iterable[str]) -> dict[str, Deployment]:
        """The described deployments of these names."""
        found = ((name, self.described.get(name)) for name in sorted(names))
        return {name: deployment for name, deployment in found if deployment is not None}

    def _describe(self, name: str, deployment: dialect.Deployment | None) -> Deployment | None:
        if deployment is None:
            can, known = self._capabilities(BUILTIN, CATALOGUE)
            sizes = WrittenSizes()
            view, scan = sizes.view(_length(can)), sizes.scan(_length(can))
            return Deployment(name, BUILTIN, None, name, "auto", None, view, can, scan=scan) if known else None
        if (deployment.artifact is None) == (not addresses(deployment)):
            return None
        if is_remote(deployment):
            return self._remote(name, deployment)
        artifact, capabilities, known = None, None, True
        if deployment.artifact is not None:
            artifact = self._located(deployment.artifact)
            path = deployment.at("artifact")
            named = artifact if deployment.revision is None else f"{artifact}@{deployment.revision}"
            unset = self.context.is_unset(path) or self.context.is_unset(deployment.at("revision"))
            capabilities, known = (None, True) if unset else self._capabilities(named, path)
        if not known:
            return None
        endpoints = [endpoint.rstrip("/") for endpoint, _ in addresses(deployment)]
        sizes = written_sizes(deployment)
        return Deployment(
            name=name,
            artifact=artifact,
            endpoint=endpoints[0] if endpoints else None,
            served_name=deployment.served_name or name,
            device=deployment.device or "auto",
            timeout_ms=deployment.timeout_ms,
            view=sizes.view(_length(capabilities)),
            capabilities=capabilities,
            scan=sizes.scan(_length(capabilities)),
            sizes=sizes,
            replicas=tuple(endpoints[1:]),
            key=key_source(self.context, deployment) if endpoints else None,
            max_calls=deployment.max_concurrent_calls,
            revision=deployment.revision,
            shared_context=bool(deployment.enable_shared_context),
        )

    def _remote(self, name: str, deployment: dialect.Deployment) -> Deployment:
        endpoints = [endpoint.rstrip("/") for endpoint, _ in addresses(deployment)]
        sizes = written_sizes(deployment)
        return Deployment(
            name=name,
            artifact=None,
            endpoint=endpoints[0],
            served_name=deployment.model or name,
            device="auto",
            timeout_ms=deployment.timeout_ms,
            view=sizes.view(None),
            capabilities=written_capabilities(deployment),
            scan=sizes.scan(None),
            sizes=sizes,
            dialect=dialect_of(endpoints[0]),
            replicas=tuple(endpoints[1:]),
            key=key_source(self.context, deployment),
            max_calls=deployment.max_concurrent_calls,
        )

    def _located(self, artifact: str) -> str:
        """An artifact written `./x` or `../x` is meant from the configuration's folder."""
        if artifact.startswith(("./", "../")) and self.context.folder is not None:
            return str(FilePath(self.context.folder, artifact))
        return artifact

    def _capabilities(self, artifact: str, path: Path) -> tuple[Capabilities | None, bool]:
        try:
            return self.context.describe(artifact), True
        except Exception as error:
            # Whatever a missing or broken artifact raises is a fact about this line of the configuration.
            reason = str(error) or type(error).__name__
            subject = self.context.shown(artifact, path)
            if (written := self.context.document.referenced.get(path)) is not None:
                reason = reason.replace(artifact, written)
            self.context.error(path, f"the model {subject} cannot be used: {reason}")
            return None, False


def _length(capabilities: Capabilities | None) -> int | None:
    return capabilities.readable_tokens if capabilities else None
