"""What is known of calls without running them: which change nothing, which change what, which write files.

A call that is not listed is taken to change what it is called on. So a list that lacks a name makes a script
longer, never wrong; a name on a wrong list makes it wrong. Each list holds names of the standard library and
of the libraries that notebooks use most.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

_WORD = re.compile(r"[^\W\d]\w*")
_AT = re.compile(r"(?<!\w)@([^\W\d]\w*)")


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
# Methods whose result can be gone through once.
ITERATING = names(
    """
    iterrows itertuples glob rglob iterdir imap imap_unordered finditer iter_batches iter_content iter_lines
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
    rank map applymap to_numpy to_dict to_list to_string to_frame to_csv to_parquet to_feather to_json
    to_excel to_pickle to_html to_latex to_markdown memory_usage iterrows itertuples between
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
    set options pandas initialize filterwarnings simplefilter set_verbosity seterr set_backend set_loglevel
    switch_backend set_num_threads set_grad_enabled register_at_fork
    """
)
# What changes the whole process, which anything may depend on.
PROCESS = names(
    """
    os.environ os.putenv os.unsetenv os.chdir os.umask os.nice os.setpriority sys.path sys.modules
    sys.setrecursionlimit sys.stdout sys.stderr sys.excepthook locale.setlocale warnings.filterwarnings
    warnings.simplefilter logging.basicConfig logging.config logging.disable signal.signal
    resource.setrlimit socket.setdefaulttimeout multiprocessing.set_start_method builtins atexit.register
    faulthandler.enable paicells.cd paicells.pushd paicells.popd paicells.env time.tzset
    decimal.getcontext decimal.setcontext gc.disable
    dotenv.load_dotenv nest_asyncio.apply mlflow.autolog sklearnex.patch_sklearn
    """
)
# Parts of a dotted name that say that its result is drawn from a state, so that the next one differs.
DRAWS = names(
    """
    random rand randn randint randperm shuffle choice choices uniform gauss normal permutation secrets
    normal_ randrange sample multinomial bernoulli poisson rand_like randn_like randint_like
    """
)
# Importing them changes other modules.
REGISTERING = {
    "sklearn.experimental": "sklearn",
    "rioxarray": "xarray",
    "hvplot": "pandas",
    "pandas_ta": "pandas",
    "janitor": "pandas",
    "swifter": "pandas",
    "pint_pandas": "pandas",
}
# Setting something in them sets it in another module.
SETTING_OTHERS = {"seaborn": "matplotlib", "tqdm": "pandas", "pandarallel": "pandas"}
# Whose random state it is that a module draws from.
RANDOM = {"sklearn": "numpy", "pandas": "numpy", "scipy": "numpy", "imblearn": "numpy"}
# Parts of the names of what draws from it when it is made, or when it is fitted later.
_RANDOM_MODELS = re.compile(
    r"Forest|Extra|Tree|KMeans|MLP|SGD|Boosting|Shuffle|TSNE|Mixture|Bagging|Perceptron|RandomizedS"
)
# Libraries whose functions do not change what they are given when their result is used; so does Python's own.
READERS = frozenset(sys.stdlib_module_names) | names(
    """
    numpy pandas scipy sklearn torch torchvision torchaudio tensorflow keras jax flax matplotlib seaborn
    plotly altair bokeh plotnine PIL cv2 skimage imageio nltk spacy gensim transformers datasets tokenizers
    xgboost lightgbm catboost statsmodels networkx sympy requests httpx bs4 lxml yaml toml tqdm polars pyarrow
    dask xarray cupy numba joblib cloudpickle dill h5py sqlalchemy duckdb psutil pydantic attrs attr rich
    click IPython ipywidgets dateutil pytz shapely geopandas folium paicells
    """
)
# Methods that change what they are given.
TAKES_APART = names("shuffle readinto recv_into fill_from sort_in_place")
# Methods that keep what they are given as it is.
KEEPS = names(
    """
    append add insert extend update setdefault put appendleft remove discard push register subscribe write
    log info debug warning error send execute set_params
    """
)
ASKING = frozenset(["input", "getpass.getpass", "getpass", "raw_input"])


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


def gives_iterator(name: str) -> bool:
    """Say whether the result of a function can be gone through once; its module is by its true name."""
    return name.startswith("itertools.") or name in (
        "csv.reader",
        "csv.DictReader",
        "os.scandir",
        "os.walk",
        "re.finditer",
        "glob.iglob",
        "gzip.open",
        "io.open",
    )


def draws_from(name: str) -> str:
    """Return the module from whose random state a call draws, ``numpy`` for those of sklearn, or "".

    Args:
        name: dotted name of what is called, its module by its true name.
    """
    top, *parts = name.split(".")
    last = parts[-1] if parts else ""
    if any(part in DRAWS for part in (top, *parts)):
        return RANDOM.get(top, top)
    if top in RANDOM and (last in ("train_test_split", "resample") or _RANDOM_MODELS.search(last)):
        return RANDOM[top]
    layer = name.startswith(("torch.nn.", "keras.layers.", "tensorflow.keras.layers.")) and last[:1].isupper()
    return top if layer and last not in ("Module", "Parameter", "Sequential", "ModuleList") else ""


def lists_names(call: ast.Call, name: str) -> bool:
    """Say whether a call looks at all names there are: ``dir()``, ``unittest.main()``."""
    if name in ("unittest.main", "doctest.testmod", "ipytest.run"):
        return True
    return getattr(call.func, "attr", "") == "__subclasses__" or (name == "dir" and not call.args)


def is_main_module(node: ast.expr) -> bool:
    """Say whether it is ``sys.modules[__name__]``, through which any name can be reached."""
    return (
        isinstance(node, ast.Subscript)
        and dotted(node.value) == "sys.modules"
        and (getattr(node.slice, "id", "") == "__name__" or getattr(node.slice, "value", "") == "__main__")
    )


def mentioned(call: ast.Call, name: str) -> Iterator[str]:
    """Yield words of the texts in a call that are names to it: ``limit`` of ``df.query("x > @limit")``."""
    first, _, method = name.rpartition(".")
    method = method or getattr(call.func, "attr", "")
    if method not in ("query", "eval", "evaluate", "sql", "sqldf"):
        return
    every = first in ("pd", "pandas", "ne", "numexpr", "duckdb", "psql") or method in ("sql", "sqldf")
    for part in ast.walk(call):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield from words(part.value) if every else _AT.findall(part.value)


def words(text: str) -> list[str]:
    """Return what in a text may be a name."""
    return _WORD.findall(text)


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
