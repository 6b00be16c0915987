"""Parsers of the verbs, for the magic and the command line alike, made from one table of options.

A parser never prints and never exits: a mistake is a :class:`~paijupyter.errors.UsageProblem`, a request for
help is :class:`HelpAsked`, so that each surface says it in its own way.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from paijupyter.errors import UsageProblem

Kind = Literal["value", "flag", "list", "word", "words", "rest"]
Surface = Literal["magic", "cli"]

BOTH: tuple[Surface, ...] = ("magic", "cli")
_TAKES_NO_ARGUMENTS = (".ipynb", "this-notebook")


@dataclass(frozen=True, slots=True)
class Option:
    """One row of the table of options.

    Attributes:
        name: ``--long`` for an option, a bare word for a positional argument.
        help: what it does, one sentence without its default.
        kind: ``value`` takes one value, ``flag`` none, ``list`` may be given several times, ``word`` is a
            positional argument, ``words`` any number of them, ``rest`` takes all that follows it.
        metavar: how its value is called in help.
        default: what happens without it, in words; "" says nothing.
        required: whether it must be given.
        short: its one-letter form, ``-e``.
        choices: the only values it takes.
        dest: attribute of the parsed options; by default the name with underscores.
        surfaces: where it exists.
        field: flag of the row of ``protocol/fields.py`` whose help is used instead of ``help``.
    """

    name: str
    help: str
    kind: Kind = "value"
    metavar: str = ""
    default: str = ""
    required: bool = False
    short: str = ""
    choices: tuple[str, ...] = ()
    dest: str = ""
    surfaces: tuple[Surface, ...] = BOTH
    field: bool = False

    @property
    def attribute(self) -> str:
        """Attribute of the parsed options that holds it."""
        return self.dest or self.name.lstrip("-").replace("-", "_")


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb: its name, what it does in one sentence, its options, and examples that help ends with.

    Attributes:
        confidential: whether a word that does not belong there may be a secret; no error repeats one then.
    """

    name: str
    summary: str
    options: tuple[Option, ...] = ()
    examples: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    surfaces: tuple[Surface, ...] = BOTH
    confidential: bool = False


class HelpAsked(Exception):
    """Somebody asked for help; ``text`` is the help."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class _Help(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        raise HelpAsked(parser.format_help())


class VerbParser(argparse.ArgumentParser):
    """An argparse parser that raises instead of printing and exiting."""

    confidential = False

    def error(self, message: str) -> NoReturn:
        """Raise the mistake as one sentence that starts with the thing."""
        if self.confidential and ("unrecognized" in message or "invalid choice" in message):
            raise UsageProblem(
                "Argument after the name is not taken: the value of a secret is never an argument.",
                f"See `{self.prog} --help`. If it was a value, change it: the history has it now.",
            )
        raise UsageProblem(_sentence(message), f"{self._nearest(message)}See `{self.prog} --help`.")

    def _nearest(self, message: str) -> str:
        """Return the option that is near a word which is none, as a sentence, or nothing."""
        import difflib  # a mistake may take a millisecond longer; a start may not

        _, found, words = message.partition("unrecognized arguments: ")
        given = next((each.partition("=")[0] for each in words.split() if each.startswith("--")), "")
        near = difflib.get_close_matches(given, self._option_string_actions, n=1, cutoff=0.75)
        return f"`{near[0]}` is near. " if found and near else ""


def _sentence(message: str) -> str:
    for start, words in (
        ("unrecognized arguments: ", "Option `{}` is unknown here."),
        ("the following arguments are required: ", "Argument `{}` is missing."),
    ):
        if message.startswith(start):
            return words.format(message.removeprefix(start).strip())
    if message.startswith("argument "):
        name, _, what = message.removeprefix("argument ").partition(": ")
        name = name.split("/")[-1]
        if what.startswith("expected "):
            return f"Option `{name}` needs a value."
        if what.startswith("invalid choice: "):
            value, _, choices = what.removeprefix("invalid choice: ").partition(" (choose from ")
            return f"Option `{name}` has no choice {value}; choose from {choices.rstrip(')')}."
        return f"Option `{name}`: {what}."
    return message[:1].upper() + message[1:] + ("" if message.endswith(".") else ".")


def help_of(option: Option, field_help: Mapping[str, str]) -> str:
    """Return the help of an option with its state: required, or optional and its default (P33)."""
    text = (field_help.get(option.name) or option.help) if option.field else option.help
    text = text.rstrip(".")
    if option.required:
        state = "required"
    elif option.default:
        state = f"optional; default: {option.default}"
    else:
        state = "optional"
    if option.kind == "list":
        state += "; may be given several times"
    return f"{text} ({state}).".replace("%", "%%")


def build(verb: Verb, surface: Surface, prog: str, field_help: Mapping[str, str]) -> VerbParser:
    """Make the parser of one verb for one surface.

    Args:
        verb: its row.
        surface: only options of this surface are taken.
        prog: how the verb is called there, for example ``%paijob submit``.
        field_help: help texts of the job document's fields by flag.
    """
    parser = VerbParser(
        prog=prog,
        description=verb.summary,
        epilog=_epilog(verb, prog),
        add_help=False,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.confidential = verb.confidential
    for option in verb.options:
        if surface in option.surfaces:
            _add(parser, option, help_of(option, field_help))
    parser.add_argument("-h", "--help", nargs=0, action=_Help, help="Show this help (optional).")
    return parser


def _epilog(verb: Verb, prog: str) -> str:
    start = prog.split()[0]
    lines = [f"  {start} {example}" for example in verb.examples]
    return "\n".join(["examples:", *lines]) if lines else ""


def _add(parser: VerbParser, option: Option, text: str) -> None:
    more: dict[str, Any] = {"help": text, "dest": option.attribute}
    if option.choices:
        more["choices"] = option.choices
    if option.metavar and option.kind != "flag":
        more["metavar"] = option.metavar
    names = [option.short, option.name] if option.short else [option.name]
    if option.kind == "flag":
        parser.add_argument(*names, action="store_true", **more)
    elif option.kind == "list":
        parser.add_argument(*names, action="append", default=[], **more)
    elif option.kind == "value":
        parser.add_argument(*names, required=option.required, **more)
    else:
        del more["dest"]
        more.setdefault("metavar", option.name)
        nargs = "*" if option.kind in ("words", "rest") else (None if option.required else "?")
        parser.add_argument(option.attribute, nargs=nargs, **more)


def parse(verb: Verb, parser: VerbParser, words: Sequence[str]) -> argparse.Namespace:
    """Parse the words after a verb.

    Where the verb takes ``rest``, everything after its first positional argument (or after ``--``) belongs to
    the user's script and is not looked at, as with ``python script.py``. A notebook takes no arguments, so
    options may follow it too.

    Raises:
        UsageProblem: an option or value is wrong.
        HelpAsked: ``-h`` or ``--help`` is among the verb's own words.
    """
    rest = next((option for option in verb.options if option.kind == "rest"), None)
    if rest is None:
        return parser.parse_args(list(words))
    end = _own_words(parser, words)
    own, foreign = list(words[:end]), list(words[end:])
    if foreign and foreign[0].endswith(_TAKES_NO_ARGUMENTS):
        after = _own_words(parser, foreign[1:]) + 1
        own, foreign = own + foreign[1:after], [foreign[0], *foreign[after:]]
    if own and own[-1] == "--":
        own.pop()
    parsed = parser.parse_args(own)
    first = next(option for option in verb.options if option.kind == "word")
    setattr(parsed, first.attribute, foreign[0] if foreign else None)
    setattr(parsed, rest.attribute, foreign[1:])
    return parsed


def _own_words(parser: VerbParser, words: Sequence[str]) -> int:
    """Return how many words come before the first positional argument."""
    actions = parser._option_string_actions
    index = 0
    while index < len(words):
        word = words[index]
        if word == "--":
            return index + 1
        if not word.startswith("-") or word == "-":
            return index
        action = actions.get(word)
        takes_value = action is not None and action.nargs is None
        index += 2 if takes_value else 1
    return min(index, len(words))
