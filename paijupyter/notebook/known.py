"""What is known of calls without running them: which change nothing, which change what, which write files.

A call that is not listed is taken to change what it is called on. So a list that lacks a name makes a script
longer, never wrong; a name on a wrong list makes it wrong. Each list holds names of the standard library and
of the libraries that notebooks use most.
"""

from __future__ import annotations

import ast


def names(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


# Functions of Python that change none of their arguments.
QUIET = names(
    """
    abs all any ascii bin bool bytes callable chr classmethod complex dict dir divmod enumerate filter float
    format frozenset getattr hasattr hash help hex id int isinstance issubclass iter len list map max
    memoryview min object oct ord pow print property range repr reversed round set slice sorted staticmethod
    str sum super tuple type zip display Path Counter defaultdict OrderedDict deque namedtuple partial
    reduce deepcopy copy
    """
)
# Of those, the ones whose result refers to none of its arguments.
FRESH = names(
    """
    abs all any ascii bin bool bytes callable chr complex divmod float format hasattr hash hex id int
    isinstance issubclass len oct ord pow print range repr round str sum help deepcopy
    """
)
# What returns something that can be gone through once.
ITERATORS = names(
    """
    iter map filter zip enumerate reversed open
    """
)
# Methods that read. With `inplace=True` they do change.
READING = names(
    """
    count index find rfind startswith endswith split rsplit splitlines partition rpartition strip lstrip
    rstrip lower upper title capitalize casefold replace join format format_map encode decode isdigit
    isalpha isnumeric isidentifier isspace islower isupper zfill ljust rjust center translate keys values
    items copy union intersection difference symmetric_difference issubset issuperset isdisjoint most_common
    elements total exists is_file is_dir resolve absolute with_suffix with_name relative_to joinpath glob
    rglob iterdir stat as_posix read_text read_bytes isoformat strftime timestamp total_seconds weekday
    bit_length as_integer_ratio mean std var min max sum prod cumsum cumprod argmin argmax argsort any all
    round clip dot reshape ravel flatten transpose squeeze unsqueeze astype tolist item tobytes nonzero take
    repeat trace diagonal conj head tail describe info sample nunique unique value_counts isna isnull notna
    notnull duplicated corr cov quantile median mode groupby agg aggregate merge assign query pivot
    pivot_table melt stack unstack explode rename drop dropna fillna drop_duplicates reset_index set_index
    sort_values sort_index sort_by select_dtypes nlargest nsmallest rolling resample shift diff pct_change
    rank map applymap to_numpy to_dict to_list to_string to_frame memory_usage iterrows itertuples between
    isin ne eq lt gt le ge where mask abs transform size dim numel detach cpu numpy parameters
    named_parameters state_dict modules children named_modules permute view expand contiguous softmax
    log_softmax argwhere norm predict predict_proba predict_log_proba decision_function score get_params
    inverse_transform evaluate summary show savefig
    """
)
# Methods that read a frame and change a picture.
DRAWN = names(
    """
    plot hist scatter bar barh line box boxplot pie area kde density hexbin imshow
    """
)
# Modules whose functions have no state of their own that a later cell could see.
STATELESS = names(
    """
    time json pprint glob math copy csv gc IPython tqdm pathlib statistics itertools functools operator
    collections re string textwrap datetime hashlib base64 struct dataclasses typing enum subprocess shutil
    tempfile zipfile tarfile pickle joblib cloudpickle uuid platform inspect traceback requests urllib io
    asyncio concurrent os sys matplotlib seaborn plotly altair bokeh plotnine numbers fractions abc heapq
    bisect contextlib timeit display marshal shelve dill yaml toml tomllib configparser argparse types ast
    dis
    """
)
# Modules that draw: what they are given stays as it is.
DRAWING = names(
    """
    matplotlib seaborn plotly altair bokeh plotnine pprint time logging tqdm IPython
    """
)
# Parts of a dotted name that say that a function changes the state of its module.
SETTING = names(
    """
    seed manual_seed manual_seed_all seed_everything set_seed set_random_seed set_options set_option
    set_printoptions set_default_dtype set_default_device set_theme set_style set_context set_palette
    rcParams rc rcdefaults style use register reset_option setstate set_state enable disable configure init
    filterwarnings simplefilter set_verbosity seterr set_backend set_loglevel switch_backend set_num_threads
    set_grad_enabled register_at_fork
    """
)
# What changes the whole process, which anything may depend on.
PROCESS = names(
    """
    os.environ os.putenv os.unsetenv os.chdir os.umask os.nice os.setpriority sys.path sys.modules
    sys.setrecursionlimit sys.stdout sys.stderr sys.excepthook locale.setlocale warnings.filterwarnings
    warnings.simplefilter logging.basicConfig logging.config logging.disable signal.signal
    resource.setrlimit socket.setdefaulttimeout multiprocessing.set_start_method builtins atexit.register
    faulthandler.enable paicells.cd paicells.env time.tzset decimal.getcontext decimal.setcontext gc.disable
    """
)
# Parts of a dotted name that say that its result is drawn from a state, so that the next one differs.
DRAWS = names(
    """
    random rand randn randint randperm shuffle choice choices uniform gauss normal permutation secrets
    normal_ randrange sample multinomial bernoulli poisson rand_like randn_like randint_like
    """
)
# Methods and functions that write a file whose path is among their arguments.
WRITING = names(
    """
    write write_text write_bytes writelines dump save savetxt savez savez_compressed savefig save_model
    save_weights save_pretrained to_csv to_parquet to_feather to_json to_excel to_pickle to_hdf to_html
    to_sql to_file tofile mkdir makedirs touch rename renames replace unlink remove rmtree copyfile copy
    copy2 copytree move symlink urlretrieve extractall extract download imsave imwrite write_image
    write_html export_graphviz export
    """
)
ASKING = frozenset(["input", "getpass.getpass", "getpass", "raw_input"])
_MODES = frozenset("wax+")


def dotted(node: ast.expr) -> str:
    """Return ``np.random.seed`` for that expression, "" where it is no dotted name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def is_process_wide(name: str) -> bool:
    """Say whether a dotted name, its module by its true name, is of the whole process."""
    return any(name == known or name.startswith(f"{known}.") for known in PROCESS)


def writes(call: ast.Call) -> bool:
    """Say whether a call writes a file, as far as its name and the mode of ``open`` tell."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in WRITING:
        return True
    if name != "open":
        return False
    values = [*call.args, *(word.value for word in call.keywords if word.arg == "mode")]
    modes = [each.value for each in values if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return any(len(mode) <= 4 and _MODES & set(mode) and mode.strip("rwxabt+") == "" for mode in modes)


def is_path(text: object) -> bool:
    """Say whether a constant looks like the path of a file."""
    if not isinstance(text, str) or not 2 < len(text) <= 255 or any(space in text for space in "\n\t{}<>|*"):
        return False
    return (
        ("/" in text or "." in text[1:-1])
        and not text.startswith(("http://", "https://"))
        and text.strip() == text
    )


def looked_up(node: ast.expr) -> str | None:
    """Return the name that ``globals()["x"]``, ``globals().get("x")`` or ``"x" in globals()`` reaches."""
    key: ast.expr | None = None
    if isinstance(node, ast.Subscript) and _is_globals(node.value):
        key = node.slice
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and _is_globals(node.comparators[0]):
        key = node.left
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        key = node.args[0] if len(node.args) == 1 and _is_globals(node.func.value) else None
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None


def _is_globals(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and getattr(node.func, "id", "") in ("globals", "locals", "vars")
        and not node.args
    )
