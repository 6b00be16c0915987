"""Which files a cell names, and which it writes, as far as its texts tell."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatch

from paijupyter.notebook import known
from paijupyter.notebook.names import Names

# Methods and functions that write a file whose path is among their arguments.
WRITING = known.names(
    """
    write write_text write_bytes writelines dump save savetxt savez savez_compressed savefig save_model
    save_weights save_pretrained to_csv to_parquet to_feather to_json to_excel to_pickle to_hdf to_html
    to_sql to_file tofile mkdir makedirs touch rename renames replace unlink remove rmtree copyfile copy
    copy2 copytree move symlink urlretrieve extractall extract download imsave imwrite write_image
    write_html export_graphviz export
    """
)
# Of those, the ones that are given what is written.
_CONTENT = known.names("write write_text write_bytes writelines dump")
# What runs a command, whose words may be files.
_COMMANDS = known.names("os.system os.popen subprocess.run subprocess.call subprocess.getoutput")
_RUNS = known.names("check_call check_output Popen")
# What opens a file or a database that is written later, by a method of the result.
_OPENS = known.names(
    """
    connect create_engine File ZipFile TarFile ExcelWriter HDFStore FileHandler SummaryWriter SqliteDict Path
    PurePath open
    """
)
# Of those, the ones that only read unless their mode says more.
_READS = known.names("open io.open gzip.open Image.open")
_NO_PATHS = known.names("encoding mode newline errors sep orient format how index_label dtype")
# Commands that only show something.
_SHOWING = known.names(
    """
    echo printf ls ll cat head tail wc pwd which whoami nvidia-smi nvcc free df du ps top env printenv date
    uname lscpu grep tree file find stat hostname true false test sleep
    """
)
_ENDING = re.compile(r"[\w-]\.[A-Za-z][A-Za-z0-9]{0,7}$")
_MODE = re.compile(r"[rwxa][bt+]{0,2}")
_MODES = frozenset("wax+")


def writes(call: ast.Call) -> bool:
    """Say whether a call writes a file, as far as its name and the mode of ``open`` tell."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if known.dotted(call.func) in ("paicells.shell", "paicells.program"):
        return acts(call)
    if name in WRITING:
        return True
    if name != "open":
        return False
    values = [*call.args, *(word.value for word in call.keywords if word.arg == "mode")]
    texts = [each.value for each in values if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    modes = [re.split("[:|]", text)[0] for text in texts if len(text) <= 6]  # That of an archive is `w:gz`.
    return any(len(mode) <= 4 and _MODES & set(mode) and mode.strip("rwxabt+") == "" for mode in modes)


def acts(call: ast.Call) -> bool:
    """Say whether a shell line may make files: it is not known to show something only."""
    texts = [part.value for part in ast.walk(call) if isinstance(part, ast.Constant)]
    command = " ".join(text for text in texts if isinstance(text, str))
    return ">" in command or not set(command.split()[:1]) <= _SHOWING


def written(call: ast.Call) -> Iterator[tuple[str, int]]:
    """Yield what a call may write, with its line."""
    name = known.dotted(call.func)
    last = call.func.attr if isinstance(call.func, ast.Attribute) else name
    if name in _COMMANDS or last in _RUNS:
        for part in ast.walk(call):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield from ((word.lstrip(">"), part.lineno) for word in part.value.split())
    if not writes(call):
        return
    given = [*call.args, *(word.value for word in call.keywords if word.arg not in _NO_PATHS)]
    for root in [call.func, *given]:
        for part in ast.walk(root):
            if not isinstance(part, ast.Constant) or not isinstance(part.value, str):
                continue
            loosely = last not in _CONTENT or root is call.func
            if is_path(part.value) or (loosely and _is_name(part.value)):
                yield part.value, part.lineno


def named(text: object) -> Iterator[str]:
    """Yield what a text may name: itself, or, of a command, its words."""
    if isinstance(text, str) and len(text) <= 2000:
        for word in text.split():
            if len(word) <= 255 and word not in (".", "..", "/"):
                yield word


def part_names(call: ast.Call) -> Names:
    """Return the names of which the path that a call writes may be put together."""
    roots: list[ast.expr] = [*call.args, *(word.value for word in call.keywords)]
    if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.BinOp):
        roots.append(call.func.value)
    return frozenset(part.id for root in roots for part in ast.walk(root) if isinstance(part, ast.Name))


def opened(node: ast.expr | None) -> tuple[Names, Names]:
    """Return the paths, and the names of paths, that are written by who writes by a method of a value."""
    roots: list[ast.expr] = []
    if isinstance(node, ast.Constant) or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)):
        roots = [node]
    elif isinstance(node, ast.Call):
        name = known.dotted(node.func)
        if name.rpartition(".")[2] in _OPENS and (name not in _READS or writes(node)):
            roots = node.args
    parts = [part for each in roots for part in ast.walk(each)]
    texts = {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
    return frozenset(text for text in texts if is_path(text) or _is_name(text)), frozenset(
        each.id for each in parts if isinstance(each, ast.Name)
    )


def is_path(text: object) -> bool:
    """Say whether a constant looks like the path of a file."""
    if not isinstance(text, str) or not 2 < len(text) <= 255 or any(space in text for space in "\n\t{}<>|*"):
        return False
    return (
        ("/" in text or "." in text[1:-1])
        and not text.startswith(("http://", "https://"))
        and text.strip() == text
    )


def is_file_name(text: str) -> bool:
    """Say whether a word has the ending of a file."""
    return is_path(text) and _ENDING.search(text) is not None


def _is_name(text: str) -> bool:
    """Say whether a constant may be the name of a file or folder without an ending."""
    return len(text) > 1 and not _MODE.fullmatch(text) and text.replace("_", "").replace("-", "").isalnum()


def is_at(path: str, written: str) -> bool:
    """Say whether a path or pattern is, lies in, or has in it what was written."""
    path, written = path.removeprefix("./").rstrip("/"), written.removeprefix("./").rstrip("/")
    if not path or not written:
        return False
    if any(mark in path for mark in "*?["):
        return path.strip("*?./") != "" and fnmatch(written, path)
    if "." not in written.rpartition("/")[2] and path.startswith(f"{written}."):
        return True  # ``np.save("weights", …)`` adds the ending itself.
    return path == written or path.startswith(f"{written}/") or written.startswith(f"{path}/")
