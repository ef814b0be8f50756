"""The wheel of a checkout works without the checkout: verbs, recipes, page and kernels are inside."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from zipfile import ZipFile

import httpx
import pytest

pytestmark = [pytest.mark.system, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[1]
FROZEN = ROOT / "tests" / "frozen"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def run(command: Sequence[str | Path], folder: Path) -> str:
    """What a command prints, in a folder outside of the checkout and in an environment that names none."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MT_", "PYTHONPATH"))}
    done = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("release")


@pytest.fixture(scope="module")
def built(folder: Path) -> tuple[Path, Path]:
    """The sdist, and the wheel that was built of it."""
    tools = folder / "tools"
    run([sys.executable, "-m", "venv", tools], folder)
    run([tools / "bin" / "pip", "install", "--quiet", "build"], folder)
    run([tools / "bin" / "python", "-m", "build", "--outdir", folder / "dist", ROOT], folder)
    (sdist,), (wheel,) = ((folder / "dist").glob(kind) for kind in ("*.tar.gz", "*.whl"))
    return sdist, wheel


@pytest.fixture(scope="module")
def python(folder: Path, built: tuple[Path, Path]) -> Path:
    """That of an environment with the wheel and, to spare gigabytes, the tests' packages, but not the checkout."""
    run([sys.executable, "-m", "venv", folder / "environment"], folder)
    result: Path = folder / "environment" / "bin" / "python"
    run([result, "-m", "pip", "install", "--quiet", "--no-deps", built[1]], folder)
    value = Path(run([result, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], folder).strip())
    (value / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n")  # whose own .pth files are not read
    return result


@pytest.fixture(scope="module")
def client(folder: Path, python: Path) -> Iterator[httpx.Client]:
    """Of a service with the frozen model, started in an empty folder."""
    shutil.copytree(FROZEN / "model", folder / "model")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MT_", "PYTHONPATH"))}
    command = [str(python), "-m", "service", "--model", "model", "--port", "0", "--device", "cpu", "--threads", "1"]
    command += ["--log-json", "true"]
    process = subprocess.Popen(command, cwd=folder, env=kept, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        output = []
        for line in process.stderr:
            output.append(line)
            if line.startswith("{") and (port := json.loads(line).get("port")):
                break
        else:
            raise AssertionError("".join(output))
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as client:
            yield client
    finally:
        process.terminate()
        process.communicate()


def tracked(room: str) -> set[str]:
    listing = subprocess.run(["git", "ls-files", room], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    return {name for name in listing.stdout.split() if (ROOT / name).exists()}


def test_the_sdist_has_what_is_needed_and_no_more(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as file:
        sizes = {member.name.partition("/")[2]: member.size for member in file.getmembers()}
    for room in ("mt", "service", "scripts", "tests"):
        assert tracked(room) <= sizes.keys(), room
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "requirements/service.lock"} <= sizes.keys()
    assert sum(sizes.values()) < 25_000_000  # 13 MB of them are the starter model
    junk = ("runs", "data", "dist", ".venv", ".git/", ".mypy_cache", ".pytest_cache", "mt/kernels/prebuilt")
    assert [name for name in sizes if name.startswith(junk) or "__pycache__" in name] == []


def test_the_wheel_has_both_packages_the_recipes_and_the_kernels(built: tuple[Path, Path]) -> None:
    assert f"-{VERSION}-" in built[1].name
    with ZipFile(built[1]) as file:
        names = set(file.namelist())
    of_the_checkout = {name for name in tracked("service") if name.startswith("service/deploy/")}  # for containers
    assert tracked("mt") | tracked("service") - of_the_checkout <= names
    assert {"mt/py.typed", "service/py.typed"} <= names
    assert {f"mt/recipes/{Path(name).name}" for name in tracked("scripts/recipes")} <= names
    assert {name.split("/")[0] for name in names} == {"mt", "service", f"mt_service-{VERSION}.dist-info"}
    if shutil.which("c++") is not None:
        assert "mt/kernels/prebuilt/plain.so" in names


def test_nothing_of_the_checkout_is_used(python: Path, folder: Path) -> None:
    program = "import mt, service; from importlib.metadata import distribution as d\n"
    program += "print(mt.__file__, service.__file__, d('mt-service').locate_file('.'), d('mt-service').version)"
    *places, version = run([python, "-c", program], folder).split()
    assert len(places) == 3 and all(Path(place).is_relative_to(folder) for place in places)
    assert version == VERSION
    assert "--max-characters" in run([python, "-m", "service", "--help"], folder)


def test_the_recipes_can_be_read(python: Path, folder: Path) -> None:
    program = (
        "from importlib.resources import files; from mt.build.config import read_build_recipe as b\n"
        "from mt.recipe import load_recipe as t\n"
        "size = ['model.size=tiny']\n"  # that of a recipe that tunes a model comes from there
        "paths = files('mt').joinpath('recipes').iterdir()\n"
        "print(*[b(path)[0].name if path.name.startswith('build-') else t(path, size).name for path in paths])"
    )
    assert len(run([python, "-c", program], folder).split()) == len(tracked("scripts/recipes")) >= 4


def test_the_verbs_run_without_the_checkout(python: Path, folder: Path) -> None:
    """Keys, translation of a file, evaluation, and training of the installed phrasebook recipe for a few updates."""
    mt_service = python.with_name("mt-service")
    assert "translate " in run([mt_service], folder)
    key = run([mt_service, "keys", "add", "wiki", "--database", "service.db"], folder).strip()
    assert key.startswith("mt_")
    pairs = [line.split("\t") for line in (FROZEN / "lines.tsv").read_text(encoding="utf-8").splitlines()]
    for place, name in enumerate(("lines.en", "lines.de")):
        (folder / name).write_text("".join(f"{pair[place]}\n" for pair in pairs), encoding="utf-8")
    translated = run([mt_service, "translate", "--model", FROZEN / "model", "lines.en", "--device", "cpu"], folder)
    assert translated == (folder / "lines.de").read_text(encoding="utf-8")
    files = ["--source-file", "lines.en", "--reference-file", "lines.de", "--device", "cpu"]
    assert json.loads(run([mt_service, "evaluate", FROZEN / "model", *files], folder))["exact_match"]["percent"] == 100
    assert "OWNER/MODEL" in run([mt_service, "import", "--help"], folder)
    run([mt_service, "fetch", "phrasebook", "--out", "data/phrasebook"], folder)
    short = ["training.max_updates=4", "training.validate_every=4", "training.save_every=4", "data.root='data'"]
    run([mt_service, "train", "phrasebook.toml", *short, "--processes", "1", "--device", "cpu"], folder)
    translated = run([mt_service, "translate", "--model", "runs/phrasebook-en-de/model", "lines.en"], folder)
    assert translated.count("\n") == len(pairs)


def test_the_page_is_served_whole(client: httpx.Client) -> None:
    page = client.get("/", headers={"Accept": "text/html"})
    assert page.status_code == 200 and page.text == (ROOT / "service/web/index.html").read_text(encoding="utf-8")
    for name in tracked("service/web"):
        answer = client.get(name.removeprefix("service"))
        assert answer.status_code == 200 and answer.content == (ROOT / name).read_bytes(), name
    assert client.get("/openapi.json").json()["info"]["version"] == VERSION


def test_it_translates(client: httpx.Client) -> None:
    source, target = (FROZEN / "lines.tsv").read_text(encoding="utf-8").splitlines()[0].split("\t")
    answer = client.post("/translate", json={"q": source, "source": "en", "target": "de"})
    assert answer.json()["translatedText"] == target
