"""One table of options for the magic and the command line (P4, P33; architecture decision 14)."""

from __future__ import annotations

import pytest

from paijupyter.client.options import VERBS, field_help, overview, parse_verb, parser_for, verb_named
from paijupyter.client.parser import HelpAsked, Verb
from paijupyter.errors import UsageProblem

SURFACES = ("magic", "cli")


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_help_says_of_each_value_whether_it_is_required_and_its_default(verb: Verb, surface: str) -> None:
    """P33: default, optional and required stated for each value."""
    text = " ".join(parser_for(verb, surface).format_help().split())
    for option in verb.options:
        if surface not in option.surfaces:
            assert f"{option.name} " not in text
            continue
        assert option.required or option.default, f"{verb.name} {option.name} says no default"
        stated = "(required" if option.required else f"optional; default: {option.default}"
        assert stated in text


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_examples_of_help_are_valid(verb: Verb) -> None:
    for example in verb.examples:
        name, *words = example.replace("'", "").split()
        assert parse_verb(name, words, verb.surfaces[-1]).verb == verb.name


def test_a_verb_of_notebooks_says_so_in_a_terminal() -> None:
    with pytest.raises(UsageProblem, match="in a notebook only"):
        parse_verb("form", [], "cli")
    assert "form   " not in overview("cli") and "\n  form " in overview("magic")


def test_all_the_verbs_a_user_needs_are_there() -> None:
    """P3: not only start."""
    wanted = (
        "submit plan list get describe logs stop retry clone delete export pull wait version doctor profile"
    )
    for name in wanted.split():
        assert verb_named(name).name in overview("cli")


def test_help_of_fields_comes_from_the_table_of_fields() -> None:
    """Architecture decision 14."""
    text = " ".join(parser_for(verb_named("submit"), "cli").format_help().split())
    for flag in ("--image", "--time-limit", "--retry", "--requirements"):
        assert field_help()[flag].rstrip(".").replace("\n", " ") in text


def test_every_flag_of_the_table_of_fields_is_an_option() -> None:
    ours = {option.name for option in verb_named("submit").options}
    # --param is --parameter in short.
    assert {flag for flag in field_help() if flag != "--parameter"} <= ours


@pytest.mark.parametrize(
    ("words", "script", "arguments"),
    [
        (["train.py", "--epochs", "20", "--wait"], "train.py", ["--epochs", "20", "--wait"]),
        (["--role", "worker:2", "train.py", "-x"], "train.py", ["-x"]),
        (["--role=worker:2", "-e", "A=b", "--", "train.py", "--help"], "train.py", ["--help"]),
        (["--wait", "train.py"], "train.py", []),
        (["--command", "true"], None, []),
    ],
)
def test_what_follows_the_script_is_its_own(
    words: list[str], script: str | None, arguments: list[str]
) -> None:
    """P6: command arguments instead of fixed inputs."""
    parsed = parse_verb("submit", words, "cli")
    assert (parsed.script, parsed.arguments) == (script, arguments)


def test_options_that_come_several_times_are_kept_in_order() -> None:
    parsed = parse_verb("submit", ["--role", "ps:1", "--role", "worker:4", "-e", "A=1", "-e", "B=2"], "cli")
    assert parsed.role == ["ps:1", "worker:4"]
    assert parsed.env == ["A=1", "B=2"]


@pytest.mark.parametrize(
    ("verb", "words", "message"),
    [
        ("submit", ["--rol", "x"], "Option `--rol` is unknown here."),
        ("submit", ["--role"], "Option `--role` needs a value."),
        ("list", ["--state", "done"], "Option `--state` has no choice 'done'"),
        ("list", ["--limit", "5", "extra"], "Option `extra` is unknown here."),
        ("submit", ["--sh"], "Option `--sh` is unknown here."),
    ],
)
def test_a_mistake_is_one_sentence_that_starts_with_the_thing(
    verb: str, words: list[str], message: str
) -> None:
    with pytest.raises(UsageProblem) as caught:
        parse_verb(verb, words, "cli")
    assert caught.value.message.startswith(message)
    assert "\n" not in str(caught.value)
    assert f"paijob {verb} --help" in caught.value.hint


def test_an_unknown_option_names_the_near_one() -> None:
    for words, near in ((["--parm=lr=1"], "`--param` is near. "), (["--zzz"], ""), (["a.py", "extra"], "")):
        with pytest.raises(UsageProblem) as caught:
            parse_verb("plan" if "extra" not in words else "get", words, "cli")
        assert caught.value.hint.startswith(f"{near}See `paijob ")


def test_an_unknown_verb_names_the_near_one() -> None:
    with pytest.raises(UsageProblem, match=r"Verb `lgos` does not exist\. `logs` is near\."):
        parse_verb("lgos", [], "cli")
    with pytest.raises(UsageProblem, match="The verbs are: submit, plan"):
        parse_verb("xyzzy", [], "cli")


def test_aliases_are_the_same_verb() -> None:
    assert parse_verb("describe", ["last"], "cli").verb == "get"
    assert parse_verb("status", [], "magic").job is None


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_is_asked_for_and_not_printed(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(HelpAsked) as asked:
        parse_verb("submit", [word], "magic", prog="%%paijob")
    assert "usage: %%paijob" in asked.value.text
    assert capsys.readouterr() == ("", "")


def test_help_after_the_script_is_for_the_script() -> None:
    assert parse_verb("submit", ["train.py", "--help"], "cli").arguments == ["--help"]


def test_options_of_one_surface_read_as_not_given_on_the_other() -> None:
    assert parse_verb("submit", [], "cli").sh is False
    assert parse_verb("submit", [], "cli").variable is None
    assert parse_verb("submit", [], "magic").json is False
