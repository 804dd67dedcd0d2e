"""torch.hub: what lies in the folder is used, and nothing is downloaded."""

import pytest

import jaxgrad
from jaxgrad import hub
from jaxgrad.tape import settings

HUBCONF = '''
dependencies = ["numpy"]
import helper

def double(x, by=2):
    """Twice."""
    return helper.times(x, by)

def _private():
    pass
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(settings.process, "hub_folder", None)
    hub.set_dir(tmp_path / "hub")
    for name in ("hub/owner_net_main", "hub/owner_net_v1_0", "local"):
        place = tmp_path / name
        place.mkdir(parents=True)
        (place / "hubconf.py").write_text(HUBCONF)
        (place / "helper.py").write_text("def times(x, by): return x * by")
    return tmp_path


def test_folders_of_hub(monkeypatch):
    monkeypatch.setattr(settings.process, "hub_folder", None)
    monkeypatch.setenv("TORCH_HOME", "/home")
    assert hub.get_dir() == "/home/hub"
    monkeypatch.delenv("TORCH_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert hub.get_dir() == "/cache/torch/hub"
    hub.set_dir("/mine")
    assert hub.get_dir() == "/mine"


def test_load_list_and_help_of_a_folder(folder):
    assert hub.load(folder / "local", "double", 3, source="local", by=4) == 12
    assert hub.load("owner/net", "double", 3, trust_repo=True) == 6
    assert hub.load("owner/net:v1_0", "double", 3) == 6
    assert hub.list("owner/net") == ["double"] and hub.help("owner/net", "double") == "Twice."


def test_nothing_is_downloaded(folder):
    where = folder / "hub" / "owner_other_main"
    with pytest.raises(FileNotFoundError, match=f"downloads nothing: clone .* to {where}"):
        hub.load("owner/other", "double")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        hub.load(folder / "nowhere", "double", source="local")
    with pytest.raises(RuntimeError, match="Cannot find callable triple in hubconf"):
        hub.load("owner/net", "triple")
    with pytest.raises(ValueError, match='Unknown source: "web"'):
        hub.load("owner/net", "double", source="web")
    for name in ("owner", "owner/net/more", "/net"):
        with pytest.raises(ValueError, match="expected 'owner/name'"):
            hub.load(name, "double")
    conf = folder / "local" / "hubconf.py"
    conf.write_text('dependencies = ["no_such_package"]\ndef double(x): return x\n')
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package"):
        hub.load(folder / "local", "double", 3, source="local")


def test_weights(folder):
    url = "https://example.org/a/net-5c106cde.safetensors?download=1"
    place = folder / "hub" / "checkpoints" / "net-5c106cde.safetensors"
    with pytest.raises(FileNotFoundError, match=f"jaxgrad downloads nothing: get .* at {place}"):
        hub.load_state_dict_from_url(url)
    place.parent.mkdir()
    jaxgrad.save({"weight": jaxgrad.ones(2)}, place)
    state = jaxgrad.utils.model_zoo.load_url(url, map_location="cpu", progress=False)
    assert state["weight"].tolist() == [1, 1]
    jaxgrad.save({"weight": jaxgrad.zeros(1)}, folder / "other.safetensors")
    weights = hub.load_state_dict_from_url(url, str(folder), file_name="other.safetensors")
    assert weights["weight"].tolist() == [0]
    assert hub.HASH_REGEX.search(place.name)[1] == "5c106cde"


def test_progress_bars():
    with hub._NoBar(range(3), total=3) as bar:
        bar.update(1)
        assert list(bar) == [0, 1, 2]
    assert callable(hub.tqdm) and callable(jaxgrad.utils.model_zoo.tqdm)
