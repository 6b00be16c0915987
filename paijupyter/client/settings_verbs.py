"""The verbs ``profile`` and ``secret``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from paijupyter.client import tables
from paijupyter.client.sources import Origin
from paijupyter.client.submission import Ask, again
from paijupyter.client.verbs import Reply, find
from paijupyter.errors import InvalidDocument, UsageProblem

if TYPE_CHECKING:
    from paijupyter.client.client import JobsClient
    from paijupyter.client.settings import SettingsClient

_WHO = {"built-in": "built in", "administrator": "administrator", "user": "you"}


def profile(client: JobsClient, options: Namespace, origin: Origin) -> Reply:
    """Carry out ``profile ACTION NAME``.

    Raises:
        PaiJupyterError: the profile does not exist, or the change is refused.
    """
    action = options.action or "list"
    if (options.set and action not in ("add", "edit")) or (options.unset and action != "edit"):
        raise UsageProblem("Option `--set` goes with profile add and edit, `--unset` with edit.")
    if action == "list":
        return _list(client.settings)
    name = options.name
    if not name and action in ("show", "test"):
        name = client.settings.profiles()["default"]
    if not name:
        raise UsageProblem("Argument `name` is missing.", f"Write: profile {action} NAME.")
    return _PROFILE[action](client.settings, name, options)


def _list(settings: SettingsClient) -> Reply:
    found = settings.profiles()
    rows = tables.profile_rows(found["profiles"])
    text = tables.plain(tables.PROFILE_COLUMNS, rows)
    text = "\n".join([text, *(f"⚠ {problem}" for problem in found.get("problems") or ())])
    return Reply(text, found["profiles"], tables.html(tables.PROFILE_COLUMNS, rows))


def _show(settings: SettingsClient, name: str, options: Namespace) -> Reply:
    found = settings.profile(name)
    rows = _rows(found)
    head = f"{found['name']}" + ("  (default)" if found["default"] else "")
    wrong = [f"⚠ {found['reason']}"] if found.get("reason") else []
    text = "\n".join([head, tables.plain(_COLUMNS, rows), *wrong])
    return Reply(text, found, tables.html(_COLUMNS, rows))


_COLUMNS = ("setting", "value", "from", "file")


def _rows(found: Mapping[str, Any]) -> list[tuple[str, ...]]:
    values = {"kind": found["kind"], **found["settings"]}
    rows: list[tuple[str, ...]] = []
    for key, value in values.items():
        source = found["sources"].get(key) or {"by": "built-in", "file": ""}
        rows.append((key, str(value), _WHO[source["by"]], source["file"]))
    return rows


def _add(settings: SettingsClient, name: str, options: Namespace) -> Reply:
    found = settings.add_profile(name, {"kind": options.kind or "local", **_pairs(options)})
    return Reply(f"Profile `{name}` is added. Try it with: profile test {name}", found)


def _edit(settings: SettingsClient, name: str, options: Namespace) -> Reply:
    changes = {**({"kind": options.kind} if options.kind else {}), **_pairs(options)}
    if not changes and not options.unset:
        raise UsageProblem("Nothing is to be changed.", f"Write: profile edit {name} --set KEY=VALUE.")
    found = settings.edit_profile(name, changes, options.unset)
    return Reply(f"Profile `{name}` is changed in your profiles.yaml.", found)


def _remove(settings: SettingsClient, name: str, options: Namespace) -> Reply:
    left = settings.remove_profile(name)
    if left is None:
        return Reply(f"Profile `{name}` is removed.", None)
    by = "your administrator" if _is_of(left, "administrator") else "paijupyter itself"
    return Reply(f"Profile `{name}` is removed from your profiles.yaml; what {by} says of it stays.", left)


def _is_of(found: Mapping[str, Any], by: str) -> bool:
    return any(source["by"] == by for source in found["sources"].values())


def _default(settings: SettingsClient, name: str, options: Namespace) -> Reply:
    return Reply(f"Profile `{name}` is taken where none is named.", settings.choose_profile(name))


def _test(settings: SettingsClient, name: str, options: Namespace) -> Reply:
    found = settings.test_profile(name)
    if not found["ok"]:
        lines = [f"✕ {name}: {found['message']}", *([f"  → {found['hint']}"] if found["hint"] else [])]
        return Reply("\n".join(lines), found, ok=False)
    facts = found.get("capabilities") or {}
    free = facts.get("free") or {}
    lines = [f"✓ {name} answers"]
    lines += [
        f"  {key}: {free.get(key, total):g} of {total:g} free"
        for key, total in (facts.get("capacity") or {}).items()
    ]
    if facts.get("features"):
        lines.append(f"  can: {', '.join(facts['features'])}")
    lines += [f"⚠ {problem}" for problem in found["problems"]]
    return Reply("\n".join(lines), found)


def _pairs(options: Namespace) -> dict[str, Any]:
    found = {}
    for text in options.set:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UsageProblem("Option `--set` needs KEY=VALUE.")
        found[key.strip()] = _value(key.strip(), value.strip())
    return found


def _value(key: str, text: str) -> Any:
    """Read the value of a setting; a mapping or a list is written as in YAML, on one line."""
    from paijupyter.protocol.document import parse_values
    from paijupyter.protocol.parameters import typed_value

    if text[:1] not in ("{", "["):
        return typed_value(text)
    try:
        values, _, problems = parse_values(f"value: {text}")
    except InvalidDocument as error:
        problems = error.problems
    if problems:
        why = f"{problems[0].message.rstrip('.')}."
        raise UsageProblem(
            f"Value of `{key}` cannot be read: {why}", "Write it like {name: value, other: [1, 2]}."
        )
    return values["value"]


_PROFILE: Mapping[str, Callable[[SettingsClient, str, Namespace], Reply]] = {
    "show": _show,
    "add": _add,
    "edit": _edit,
    "rm": _remove,
    "default": _default,
    "test": _test,
}


def secret(client: JobsClient, options: Namespace, origin: Origin, ask: Ask) -> Reply:
    """Carry out ``secret ACTION NAME``. No answer and no error repeats a value.

    Raises:
        PaiJupyterError: there is no keyring, no such secret, or nobody can be asked.
    """
    from paijupyter.protocol.secrets import check_stored_name

    action = options.action or "list"
    if options.secret and action != "give":
        raise UsageProblem("Option `--secret` goes with `secret give`.")
    if action == "give":
        return _give(client, options, origin, ask)
    if action == "list":
        names = client.settings.secrets()
        return Reply("\n".join(names) or "No secrets are stored.", names)
    if not options.name:
        raise UsageProblem("Argument `name` is missing.", f"Write: secret {action} NAME.")
    check_stored_name(options.name)
    if action == "rm":
        client.settings.remove_secret(options.name)
        return Reply(f"Secret `{options.name}` is removed from the keyring.", None)
    return _set(client.settings, options.name, ask)


def _set(settings: SettingsClient, name: str, ask: Ask) -> Reply:
    settings.secrets()  # asks for nothing where no keyring can take it
    try:
        value = ask(f"Value of {name}: ")
    except (EOFError, NotImplementedError):  # no terminal; a notebook that is executed without its user
        raise UsageProblem(f"Secret `{name}` cannot be asked for here: nobody can answer.") from None
    settings.put_secret(name, value)
    return Reply(f"Secret `{name}` is stored. Use it with: --secret NAME=keyring:{name}", None)


def _give(client: JobsClient, options: Namespace, origin: Origin, ask: Ask) -> Reply:
    options.job = options.name
    view = find(client, options, origin)
    secrets = again(view.get("secretReferences") or {}, options.secret, ask)
    view = client.settings.give_secrets(view["id"], secrets)
    return Reply(f"`{view['name']}` has its secrets again and goes on.", view, view=view)
