"""Every command of README.md and docs/*.md exists and has its options; those of the first screen are run."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

import pytest

from mt.cli.main import all_verbs, main
from tests.conftest import free_port, without_settings

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PAGES = (README, *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "understanding").glob("*.md")))
COMMANDS = ("mt-service ", "python scripts/", "bash scripts/", "python -m service", "torchrun ", "curl ")
SEPARATORS = ("|", "&", "&&", ";", ">")
FENCE = re.compile(r"^```bash[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
SCRIPT = re.compile(r"\bscripts/[\w/.-]+\.(?:py|sh|toml)\b")
DEMO_MODEL = ROOT / "runs" / "phrasebook-check-en-de" / "model"
PORT = ":8000"


def commands(markdown: str) -> list[str]:
    """The project's commands in bash blocks, each on one line, without comments and prompts, also those in a pipe."""
    lines = []
    for block in FENCE.findall(markdown):
        pending = ""
        for line in block.splitlines():
            pending += line.removeprefix("$ ") if not pending else f"\n{line}"
            if pending.endswith("\\"):
                pending = pending[:-1].rstrip() + " "
                continue
            try:
                words = shlex.split(pending, comments=True)
            except ValueError:  # a quotation goes on in the next line
                continue
            pending = ""
            parts = [list(part) for split, part in groupby(words, SEPARATORS.__contains__) if not split]
            lines += [text for text in map(shlex.join, parts) if text.startswith(COMMANDS)]
    return lines


@cache
def documented_commands() -> tuple[str, ...]:
    return tuple(command for page in PAGES for command in commands(page.read_text(encoding="utf-8")))


def verb(command: str) -> str | None:
    """The verb of mt-service that a command runs, None for another program."""
    words = shlex.split(command)
    if words[0] == "mt-service":
        return next((word for word in words[1:] if not word.startswith("-")), "")
    if words[:3] == ["python", "-m", "service"]:
        return "serve"
    script = next((word for word in words if word.startswith("scripts/") and word.endswith(".py")), None)
    return script and Path(script).stem.replace("_", "-")


@pytest.fixture
def help_of(capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """The output of `mt-service VERB --help`, in this process, because the import of torch is slow."""

    @cache
    def run(name: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main([name, *(["add"] if name == "keys" else []), "--help"])
        assert not ended.value.code
        return capsys.readouterr().out

    return run


def options(command: str) -> set[str]:
    """`--beam-size` of `--beam-size 5` and of `--beam-size=5`."""
    return {word.split("=")[0] for word in shlex.split(command) if re.match(r"--[a-z]", word)}


def test_the_first_screen_has_two_commands_and_files_exist() -> None:
    first_screen = "\n".join(README.read_text(encoding="utf-8").splitlines()[:40])
    assert {"bash scripts/demo.sh", "bash scripts/test.sh"} <= set(commands(first_screen))
    files = {path for command in documented_commands() for path in SCRIPT.findall(command)}
    assert len(files) >= 8 and len(documented_commands()) >= 80
    assert sorted(path for path in files if not (ROOT / path).is_file()) == []


def test_verbs_and_options_in_commands_exist(help_of: Callable[[str], str]) -> None:
    unknown = [
        f"{option} in: {command}"
        for command in documented_commands()
        if (name := verb(command))
        for option in options(command.partition("scripts/")[2] or command) - {"--help"}
        if name not in all_verbs() or option not in help_of(name)
    ]
    assert unknown == []


@pytest.mark.parametrize("name", all_verbs())
def test_a_verb_describes_itself(name: str, help_of: Callable[[str], str]) -> None:
    assert f"usage: mt-service {name} " in help_of(name)


@pytest.mark.parametrize("name", ["train", "prepare", "evaluate", "translate", "import", "export"])
def test_training_through_scripts(name: str) -> None:
    assert f'main(["{name}", *sys.argv[1:]])' in (ROOT / "scripts" / f"{name.replace('-', '_')}.py").read_text()


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["-m", "mt"], "usage: mt-service VERB"),
        (["scripts/export.py", "--help"], "usage: python scripts/export.py "),
        (["-c", "from mt.cli.main import main; main(['export', '--help'])"], "usage: mt-service export "),
    ],
)
def test_the_ways_to_run_a_verb(command: list[str], shown: str) -> None:
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(shown)


@pytest.mark.parametrize("name", ["demo", "gpu", "image", "release", "setup", "test"])
def test_a_script_describes_itself(name: str) -> None:
    shown = subprocess.run(["bash", f"scripts/{name}.sh", "--help"], cwd=ROOT, capture_output=True, text=True)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert f"scripts/{name}.sh" in shown.stdout


@pytest.fixture(scope="module")
def demo() -> str:
    """What `demo.sh --check` prints; afterwards its model is there, which has not learned much."""
    done = subprocess.run(
        ["bash", "scripts/demo.sh", "--check"],
        cwd=ROOT,
        env={**without_settings(), "MT_PORT": str(free_port())},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def service_port(demo: str) -> Iterator[int]:
    """A service with the demo's model, which accepts suggestions."""
    port = free_port()
    options = ["--model", str(DEMO_MODEL), "--port", str(port), "--suggestions", "true"]
    process = subprocess.Popen([sys.executable, "-m", "service", *options], cwd=ROOT, env=without_settings())
    opener = build_opener(ProxyHandler({}))
    try:
        while process.poll() is None:
            try:
                opener.open(f"http://127.0.0.1:{port}/health").close()
                break
            except OSError:
                time.sleep(0.2)
        assert process.poll() is None, "the service stopped before it answered"
        yield port
    finally:
        process.terminate()
        process.wait()


@pytest.mark.system
def test_demo_trains_scores_and_answers(demo: str) -> None:
    scores = json.loads((DEMO_MODEL.parent / "scores.json").read_text(encoding="utf-8"))
    assert [score["name"] for score in scores["scores"]][:2] == ["BLEU", "chrF2"] and scores["sentences"] == 2000
    assert demo.count('"translatedText":') == 2
    assert "Où puis-je garer la voiture ?" in demo  # the starter model
    assert "curl http://localhost:" in demo


@pytest.mark.slow
@pytest.mark.system
def test_the_phrasebook_is_learned(tmp_path: Path) -> None:
    recipe = str(ROOT / "scripts" / "recipes" / "phrasebook.toml")
    run, scores = tmp_path / "run", tmp_path / "scores.json"
    test = ["--tsv", str(tmp_path / "data" / "phrasebook" / "test.tsv"), "--columns", "en,de"]
    for command in (
        ["fetch", "phrasebook"],
        ["train", recipe, "--run", str(run), "--device", "cpu", "--processes", "2"],
        ["evaluate", str(run / "model"), *test],
    ):
        with scores.open("w", encoding="utf-8") as output:
            environment = {**os.environ, "MT_DATA": str(tmp_path / "data")}
            subprocess.run([sys.executable, "-m", "mt", *command], cwd=ROOT, env=environment, stdout=output, check=True)
    measured = json.loads(scores.read_text(encoding="utf-8"))
    bleu = next(score["value"] for score in measured["scores"] if score["name"] == "BLEU")
    assert bleu >= 90 and measured["exact_match"]["percent"] >= 90


@pytest.mark.system
def test_curl_commands_are_answered(service_port: int, tmp_path: Path) -> None:
    (tmp_path / "products.csv").write_text("id,name\nA1,two dogs\n")
    (tmp_path / "handbook.tsv").write_text("Press the button.\tTaste drücken.\n")
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    shown = [command for command in documented_commands() if command.startswith("curl ") and PORT in command]
    assert shown
    latest = ""  # id of the memory that a command has created
    for command in shown:
        typed = command.replace(PORT, f":{service_port}").replace('"ID"', f'"{latest}"').replace("/ID", f"/{latest}")
        words, before = shlex.split(typed), time.time_ns()
        words += ["--silent", "--show-error", "--fail", "--noproxy", "*"]
        done = subprocess.run(words, capture_output=True, cwd=tmp_path)
        assert done.returncode == 0, f"{command}\n{done.stderr.decode()}"
        if "-OJ" in command:
            assert any(path.stat().st_mtime_ns > before for path in tmp_path.iterdir()), command
            continue
        if "-X PUT" in command:
            latest = json.loads(done.stdout)["id"]
        events = done.stdout.decode().split("\n\n")
        assert "event: done" in events[-2] if "stream" in command else json.loads(done.stdout), command
