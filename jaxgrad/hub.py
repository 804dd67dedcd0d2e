"""Models and weights of the internet, which jaxgrad does not download, as torch.hub.

What lies in the folder already is used: `torch.hub` keeps code and weights in `get_dir()`.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import re
import sys
from pathlib import Path
from urllib.parse import urlparse as urlparse

from .names.missing import MissingName
from .serialization import load as load_file
from .tape import settings

DEFAULT_CACHE_DIR = "~/.cache"
ENV_TORCH_HOME, ENV_XDG_CACHE_HOME = "TORCH_HOME", "XDG_CACHE_HOME"
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
MODULE_HUBCONF, VAR_DEPENDENCY = "hubconf.py", "dependencies"


def get_dir() -> str:
    """Return the folder of code and weights: that of `set_dir`, else `$TORCH_HOME/hub`, else
    `$XDG_CACHE_HOME/torch/hub`, else `~/.cache/torch/hub`.

    >>> jaxgrad.hub.get_dir().endswith("hub")
    True
    """
    folder = settings.get("hub_folder")
    return os.path.join(_get_torch_home(), "hub") if folder is None else folder


def set_dir(d: str | os.PathLike) -> None:
    """Set the folder of code and weights, for this process. `~` in it is the user's home.

    >>> before = jaxgrad.hub.get_dir()
    >>> jaxgrad.hub.set_dir("weights")
    >>> jaxgrad.hub.get_dir()
    'weights'
    >>> jaxgrad.hub.set_dir(before)
    """
    settings.put("hub_folder", os.path.expanduser(d))


def _get_torch_home() -> str:
    cache = os.environ.get(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR)
    return os.path.expanduser(os.environ.get(ENV_TORCH_HOME, os.path.join(cache, "torch")))


# ---- code


def load(
    repo_or_dir,
    model: str,
    *args,
    source: str = "github",
    trust_repo="check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs,
):
    """Call a function of the `hubconf.py` in a folder, and return its result.

    repo_or_dir: the folder if `source` is "local"; else "owner/name" or "owner/name:ref", whose
    code lies in `get_dir()`, in the folder `owner_name_ref` (ref: "main" or "master" if it is left
    out). The code imports torch: call `jaxgrad.compat.install()` first.
    model: the name of the function; args, kwargs: its arguments. The others have no effect.

    Raises FileNotFoundError where the code is not there, since jaxgrad downloads nothing;
    RuntimeError if it has no such function, or needs packages that are missing.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "hubconf.py").write_text("def double(x): return 2 * x")
    >>> jaxgrad.hub.load(folder, "double", jaxgrad.ones(2), source="local")
    tensor([2., 2.])
    """
    return _entry(_code(repo_or_dir, source), model)(*args, **kwargs)


def list(
    github,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo="check",
    verbose: bool = True,
):
    """Return the names of the functions in the `hubconf.py` of "owner/name", which lies in
    `get_dir()`. Raises FileNotFoundError where it does not.

    >>> import pathlib, tempfile
    >>> before, folder = jaxgrad.hub.get_dir(), pathlib.Path(tempfile.mkdtemp())
    >>> (folder / "you_models_main").mkdir()
    >>> text = "def double(x):\\n    'Twice a tensor.'\\n    return 2 * x"
    >>> _ = (folder / "you_models_main" / "hubconf.py").write_text(text)
    >>> jaxgrad.hub.set_dir(folder)
    >>> jaxgrad.hub.list("you/models")
    ['double']
    >>> jaxgrad.hub.set_dir(before)
    """
    module = _code(github, "github")
    return [name for name, value in vars(module).items() if callable(value) and name[0] != "_"]


def help(
    github,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo="check",
):
    """Return the documentation of a function in the `hubconf.py` of "owner/name", which lies in
    `get_dir()`. Raises FileNotFoundError where it does not.

    >>> import pathlib, tempfile
    >>> before, folder = jaxgrad.hub.get_dir(), pathlib.Path(tempfile.mkdtemp())
    >>> (folder / "you_models_main").mkdir()
    >>> text = "def double(x):\\n    'Twice a tensor.'\\n    return 2 * x"
    >>> _ = (folder / "you_models_main" / "hubconf.py").write_text(text)
    >>> jaxgrad.hub.set_dir(folder)
    >>> jaxgrad.hub.help("you/models", "double")
    'Twice a tensor.'
    >>> jaxgrad.hub.set_dir(before)
    """
    return _entry(_code(github, "github"), model).__doc__


def _code(place, source):
    """The module in the `hubconf.py` of a folder, or of a repository."""
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    folder = Path(place).expanduser() if source == "local" else _repository(place)
    path = folder / MODULE_HUBCONF
    if not path.is_file():
        raise FileNotFoundError(f"torch.hub: there is no file {path}")
    spec = importlib.util.spec_from_file_location(MODULE_HUBCONF, path)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module


def _repository(place) -> Path:
    owner, _, rest = place.partition("/")
    name, _, ref = rest.partition(":")
    if not owner or not name or "/" in rest.partition(":")[0]:
        raise ValueError(f"torch.hub: expected 'owner/name' or 'owner/name:ref', got {place!r}")
    refs = [ref.replace("/", "_")] if ref else ["main", "master"]
    folders = [Path(get_dir(), f"{owner}_{name}_{revision}") for revision in refs]
    for folder in folders:
        if folder.is_dir():
            return folder
    raise FileNotFoundError(
        f"torch.hub: jaxgrad downloads nothing: clone the repository {owner}/{name} to {folders[0]}"
    )


def _entry(module, name):
    needed = getattr(module, VAR_DEPENDENCY, None) or ()
    missing = [package for package in needed if importlib.util.find_spec(package) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    entry = getattr(module, name, None)
    if not callable(entry):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return entry


# ---- weights


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location=None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
):
    """Load the file of a URL that lies in a folder, as `jaxgrad.load` does.

    model_dir: the folder, `get_dir()/checkpoints` by default. file_name: its name, by default the
    last part of the URL. The others are those of `jaxgrad.load`, or have no effect. Raises
    FileNotFoundError, which says where to put the file, if it is not there: jaxgrad downloads
    nothing.

    >>> jaxgrad.hub.load_state_dict_from_url("https://example.org/net-5c106cde.pth", "weights")
    Traceback (most recent call last):
    ...
    FileNotFoundError: jaxgrad downloads nothing: get https://example.org/net-5c106cde.pth and put \
it at weights/net-5c106cde.pth
    """
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    path = os.path.join(folder, file_name or os.path.basename(urlparse(url).path))
    if not os.path.exists(path):
        download_url_to_file(url, path)
    return load_file(path, map_location=map_location, weights_only=weights_only)


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Raise FileNotFoundError, which says where to put the file: jaxgrad downloads nothing.

    >>> try:
    ...     jaxgrad.hub.download_url_to_file("https://example.org/model.pt", "model.pt")
    ... except FileNotFoundError as error:
    ...     print(error)
    jaxgrad downloads nothing: get https://example.org/model.pt and put it at model.pt
    """
    raise FileNotFoundError(f"jaxgrad downloads nothing: get {url} and put it at {dst}")


class _NoBar:
    """The bar of a progress without the package tqdm: the steps alone."""

    def __init__(self, iterable=(), **options):
        self.iterable = iterable

    def __iter__(self):
        return iter(self.iterable)

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        pass

    def update(self, n: int = 1):
        """Do nothing."""

    close = set_description = update


__path__ = []  # as of a package: names that are absent can be imported


def __getattr__(name):
    if name != "tqdm":  # which programs take from here
        raise MissingName(__name__, name)
    with contextlib.suppress(ImportError):
        return importlib.import_module("tqdm.auto").tqdm
    return _NoBar
