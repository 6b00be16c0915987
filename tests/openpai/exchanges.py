"""What becomes of each of the 107 exchanges that were recorded with the original OpenPAI server.

All of them are asked of the scripted server (test_recorded.py) and read by our client (test_replayed.py). Of
our own door (tests/server/test_openpai_recorded.py) those are asked that it has something to answer to: the
tables say which are answered otherwise on purpose, and which are not asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NUMBERS = range(1, 108)
_NO_API = (404, "NoApiError")
_PASSWORDS = "nobody logs in with a password: the token is the Jupyter server's, and is managed there"


def _each(numbers: Iterable[int], said: str) -> dict[int, str]:
    return dict.fromkeys(numbers, said)


# Answered otherwise: status, code, why.
DIFFERENT: dict[int, tuple[int, str, str]] = {
    **dict.fromkeys((3, 4, 5, 6, 7, 8, 12, 13), (*_NO_API, _PASSWORDS)),
    11: (401, "UnauthorizedUserError", "the Jupyter server takes a token as a bearer only"),
    19: (404, "NoUserError", "there is one user, who runs the Jupyter server"),
    34: (202, "", "a resource that is not named is none"),
    40: (400, "InvalidProtocolError", "a code where the original has none"),
    41: (400, "InvalidProtocolError", "a document that is no YAML is not the server's fault"),
    42: (400, "InvalidProtocolError", "an unclosed reference is not the server's fault"),
    43: (202, "", "a role without `instances` has one"),
    45: (400, "InvalidProtocolError", "a storage that is missing is told with all else that is wrong"),
    56: (400, "InvalidParametersError", "a limit that is no number is not the server's fault"),
    **dict.fromkeys((82, 83, 84, 85), (*_NO_API, "our jobs have no tags")),
    89: (202, "", "stopping what has ended does nothing, at any time"),
    98: (404, "NoJobError", "that there is no such job is said so"),
    107: (404, "NoJobError", "a port count below 0 is refused at submission, so there is no such job"),
}
# Alike but for some facts of the answer: their keys, why.
OTHERWISE: dict[int, tuple[frozenset[str], str]] = {
    9: (frozenset({"exp", "application"}), "every token is one for applications, and does not expire"),
    23: (frozenset({"data", "type", "mountOptions"}), "what a storage is made of is not told"),
    24: (frozenset({"data", "type", "secretName", "mountOptions"}), "what a storage is made of is not told"),
    57: (frozenset({"taskRoles"}), "the tasks of a job that has not begun are known here"),
    66: (
        frozenset(
            {
                "appExitCode",
                "containerExitCode",
                "appExitSpec",
                "containerExitSpec",
                "exitCode",
                "matchedUserLogString",
            }
        ),
        "255 for any command that fails; its own 127 stands in `originUserExitCode`",
    ),
    61: (frozenset({"appExitType", "appExitCode", "containerExitCode"}), "how it ended is told when it has"),
    **dict.fromkeys(
        (63, 64),
        (
            frozenset({"appExitTriggerTaskRoleName", "appExitTriggerTaskIndex"}),
            "whose success ended it is not told",
        ),
    ),
    67: (frozenset({"exitCode", "originUserExitCode"}), "who is ended for memory has no status of its own"),
    93: (
        frozenset({"attemptId", "retries", "accountableRetries"}),
        "a task is never tried again alone: attempts are the whole job's",
    ),
    77: (frozenset({"secrets"}), "secrets are masked however their key is written"),
}
NOT_ASKED: dict[int, str] = {
    **_each((25, 87), "there is no second user"),
    **_each((52, 53), "our jobs have neither OpenPAI's priorities nor tags: the list is empty"),
    **_each((58, 59, 78, 79, 80), "images, nodes and mounts are not the local backend's"),
    **_each((69, 70, 71, 81), "what OpenPAI takes and fails later works here, or is refused at once"),
    **_each((72,), "our barrier fails and names who is missing; no retry follows"),
    **_each((73,), "exit 137 is the user's failure here, not the platform's"),
    **_each((96,), "the engine has the logs itself"),
    **_each((103,), "addresses of logs do not expire: each call needs the token"),
    **_each((104, 105), "calls are not limited"),
}
ASKED = tuple(number for number in NUMBERS if number not in NOT_ASKED)
ALIKE = tuple(number for number in ASKED if number not in DIFFERENT)


def _row(words: str, asked: Sequence[int], alike: Sequence[int]) -> str:
    counts = (len(asked), len(alike), len(asked) - len(alike), len(NUMBERS) - len(asked))
    return f"| {words} | {' | '.join(map(str, counts))} |"


def table() -> str:
    """Return the counts, and what differs and is not asked, as Markdown."""
    lines = [
        "| of 107 recorded exchanges | asked | answered alike | otherwise, on purpose | not asked |",
        "|---|---|---|---|---|",
        _row("of the scripted server that the backend is tested with", NUMBERS, NUMBERS),
        _row("read by our client, as the server sent them", NUMBERS, NUMBERS),
        _row("of our door (`paijupyter/openpai/`, local backend)", ASKED, ALIKE),
        "",
        "| our door | why |",
        "|---|---|",
    ]
    differing = {number: why for number, (*_, why) in DIFFERENT.items()}
    partly = {number: why for number, (_, why) in OTHERWISE.items()}
    for words, found in (
        ("answers otherwise", differing),
        ("answers alike but for some facts", partly),
        ("is not asked", NOT_ASKED),
    ):
        for why in dict.fromkeys(found.values()):
            numbers = ", ".join(f"{number:03}" for number in sorted(found) if found[number] == why)
            lines.append(f"| {words}: {numbers} | {why} |")
    return "\n".join(lines) + "\n"
