"""A job that is still being written: its text, its secrets, its plan, and all questions to the engine."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from paijupyter.client import submission
from paijupyter.client.folder import with_defaults
from paijupyter.client.sources import Origin, Source, package_root, source_of
from paijupyter.errors import InvalidDocument, PaiJupyterError, Problem, UsageProblem, in_order
from paijupyter.forms.patches import Patch, at, name_secrets
from paijupyter.forms.vault import Vault
from paijupyter.protocol.secrets import parse_reference, parse_secret

if TYPE_CHECKING:
    from paijupyter.client.client import JobsClient

_FILES = 12


@dataclass(frozen=True, slots=True)
class Plan:
    """What a submission would do.

    Attributes:
        data: the engine's plan, with what was found here.
        left_out: what the package leaves out, in words.
        files: path and size of the largest files that travel, the largest first.
    """

    data: Mapping[str, Any]
    left_out: tuple[str, ...] = ()
    files: tuple[tuple[str, int], ...] = ()

    @property
    def is_possible(self) -> bool:
        """Whether it can be submitted."""
        return bool(self.data.get("ok"))

    @property
    def problems(self) -> list[Problem]:
        """Everything that is to be said, worst first."""
        return in_order(Problem.from_json(each) for each in self.data.get("problems") or ())


class Draft:
    """One job before its submission. Not for several threads at once.

    Args:
        client: client of the engine.
        options: parsed options of ``submit``.
        origin: where they come from.
        cell: the cell below the line, or None.

    Raises:
        PaiJupyterError: an option, the cell or the document cannot be used.
    """

    def __init__(self, client: JobsClient, options: Namespace, origin: Origin, cell: str | None) -> None:
        self.client = client
        self.vault = Vault()
        options, hints = with_defaults(
            options, origin.folder, document=submission.whole_document(options, origin, cell)
        )
        self._options = options
        self._origin = origin
        source = _source(client, options, origin, cell)
        self._source = replace(source, problems=(*source.problems, *hints))
        self.profile: str | None = options.profile
        self.references = {each.name: each.text for each in map(parse_secret, options.secret)}
        self.text = ""
        self.data: Mapping[str, Any] | None = None
        self.unreadable: tuple[Problem, ...] = ()
        self.set_text(self._source.document)

    def set_text(self, text: str) -> None:
        """Take another text as the source document. Values of secrets in it go into the vault."""
        from paijupyter.protocol import read

        self.text = text
        try:
            self.data = read(text).raw
        except InvalidDocument as error:
            self.data, self.unreadable = None, tuple(error.problems)
            return
        self.unreadable = ()
        self._hide_values()
        for name in self.secret_names:
            self.references.setdefault(name, "ask")

    def _hide_values(self) -> None:
        """Take values of secrets out of the text, as in documents of OpenPAI."""
        found = {name: value for name, value in self._secrets.items() if value not in ("", None)}
        for name, value in found.items():
            self.vault.put(name, str(value))
            self.references[name] = "ask"
        if found:
            self.apply([{"op": "replace", "path": f"/secrets/{name}", "value": ""} for name in found])

    def apply(self, patch: Patch) -> None:
        """Change the text where the patch says, by the engine; every other byte stays.

        Raises:
            PaiJupyterError: the text or the patch cannot be used.
        """
        if self.data is None:
            raise UsageProblem("Text cannot be read as a job document.", "Correct it first.")
        if patch:
            self.set_text(str(self.client.edit(self.text, patch)["text"]))

    @property
    def _secrets(self) -> Mapping[str, Any]:
        found = at(self.data or {}, "/secrets")
        return found if isinstance(found, Mapping) else {}

    @property
    def secret_names(self) -> list[str]:
        """Names of the secrets, as the document has them."""
        return list(map(str, self._secrets))

    def refer(self, references: Mapping[str, str]) -> None:
        """Say which secrets there are, and where the value of each comes from.

        Raises:
            UsageProblem: a name or a reference is wrong.
        """
        for name, reference in references.items():
            parse_secret(f"{name}={reference}")
        self.apply(name_secrets(self.data or {}, list(references)))
        self.references = dict(references)
        self.vault.forget([name for name, text in references.items() if text != "ask"])

    def take_value(self, name: str, reference: str, value: str) -> str:
        """Keep the value of a secret until the submission, or in the keyring; return what became of it.

        Raises:
            PaiJupyterError: the keyring cannot be used.
        """
        found = parse_reference(name, reference)
        if found.scheme == "keyring":
            self.client.settings.put_secret(found.target, value)
            return "stored in the keyring"
        self.vault.put(name, value)
        return "value is given"

    def plan(self) -> Plan:
        """Say what a submission would do now; the package is made of the folder as it is now.

        Raises:
            PaiJupyterError: the text or the folder cannot be used.
        """
        if self.data is None:
            raise InvalidDocument(self.unreadable)
        prepared = self._prepared()
        return self._judged(prepared, submission.plan(self.client, prepared))

    def submit(self) -> submission.Submitted:
        """Submit; the values of secrets that were typed here are forgotten afterwards.

        Raises:
            PlanRefused: the plan has errors.
            PaiJupyterError: a secret cannot be resolved, or the engine refuses.
        """
        if self.data is None:
            raise InvalidDocument(self.unreadable)
        prepared = self._prepared()
        planned = self._judged(prepared, submission.plan(self.client, prepared))
        if not planned.is_possible:
            raise submission.PlanRefused(planned.data, planned.left_out)
        asked = {each.name for each in prepared.secrets if each.scheme == "ask"}
        elsewhere = [each for each in prepared.secrets if each.name not in asked]
        secrets = submission.resolve(elsewhere, ask=_nobody)
        secrets |= {name: {"value": self.vault.get(name), "reference": "ask"} for name in asked}
        submitted = submission.send(self.client, prepared, planned.data, secrets)
        self.vault.forget()
        return submitted

    def reference(self) -> dict[str, Any]:
        """Return what another form needs to begin with this job, without a value and without a path."""
        prepared = self._prepared()
        context = prepared.request["context"]
        return {
            "schema": 1,
            "document": self.text,
            "profile": self.profile,
            "package": prepared.request["package"],
            "data": prepared.request["data"],
            "secrets": {name: self.references[name] for name in self.secret_names},
            "resumeFrom": prepared.request["resumeFrom"],
            "context": {"cell": context["cell"], "kernel": context["kernel"]},
        }

    def _prepared(self) -> submission.Submission:
        # A person who presses a button twice wants two jobs, unless the options say otherwise.
        options = Namespace(
            **{**vars(self._options), "profile": self.profile, "again": not self._options.replace}
        )
        source = replace(self._source, document=self.text)
        if at(self.data or {}, "/extras/paijupyter/package"):
            source = replace(source, root=None)
        prepared = submission.packed(source, options, self._origin)
        names = self.secret_names
        secrets = tuple(parse_reference(name, self.references[name]) for name in names)
        return replace(prepared, secrets=secrets)

    def _judged(self, prepared: submission.Submission, data: dict[str, Any]) -> Plan:
        missing = [
            Problem(
                "error", "secret-missing", f"Secret `{each.name}` has no value yet.", f"/secrets/{each.name}",
                hint="Type it beside its name.",
            )
            for each in prepared.secrets
            if each.scheme == "ask" and each.name not in self.vault
        ]  # fmt: skip
        if missing:
            data = {**data, "ok": False, "problems": [*map(Problem.to_json, missing), *data["problems"]]}
        return Plan(data, prepared.left_out, self._files(prepared.request["package"]))

    def _files(self, package: str | None) -> tuple[tuple[str, int], ...]:
        if package is None:
            return ()
        try:
            manifest = self.client.ask("GET", f"/v1/packages/{package}")
        except PaiJupyterError:  # It says how the package looks; whether it can be submitted the plan says.
            return ()
        sizes = sorted(
            ((str(path), int(size)) for path, _, size, *_ in manifest["files"]), key=lambda each: -each[1]
        )
        return tuple(sizes[:_FILES])


def _nobody(_: str) -> str:
    raise EOFError


def _source(client: JobsClient, options: Namespace, origin: Origin, cell: str | None) -> Source:
    """Return what the form begins with: a cell, a script, a document, an earlier job, or nothing yet."""
    if getattr(options, "start", None):
        text = client.export(client.get(options.start)["id"], "source")
        return Source(text, package_root(options, origin.folder))
    something = (options.file, options.yaml, options.script, options.command, options.cells, cell)
    if any(something):
        return source_of(options, origin, cell)
    source = source_of(Namespace(**{**vars(options), "command": [":"]}), origin, None)
    return replace(source, document=_without_commands(source.document))


def _without_commands(document: str) -> str:
    """Say nothing yet of what it runs: that is what the person has to say."""
    from paijupyter.protocol import edit, read

    roles = at(read(document).raw, "/taskRoles")
    patch = [{"op": "replace", "path": f"/taskRoles/{name}/commands", "value": []} for name in roles]
    return edit(document, patch)[0]
