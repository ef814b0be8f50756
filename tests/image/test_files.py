"""The image and its manifests: what can be known by reading them, and what scripts/image.sh checks."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.metrics import FLEET_METRICS
from service.program import SHUTDOWN_SECONDS
from service.settings import Settings, variable
from service.verbs import keys, memory

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "Dockerfile"
DEPLOY = ROOT / "service" / "deploy"
BASE = DEPLOY / "kubernetes" / "base"
CPU = DEPLOY / "kubernetes" / "cpu"
KEYS = DEPLOY / "kubernetes" / "keys"
DEFAULTS = Settings.model_fields
DRAIN = DEFAULTS["grace_seconds"].default + SHUTDOWN_SECONDS


def document(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


MANIFESTS = [document(BASE / name) for name in document(BASE / "kustomization.yaml")["resources"]]
RESOURCES: dict[str, Any] = {manifest["kind"]: manifest for manifest in MANIFESTS}
"""What kustomize would read, by kind."""

DEPLOYMENT = RESOURCES["Deployment"]
COMPOSE: dict[str, Any] = document(DEPLOY / "compose.yaml")["services"]


def pod(deployment: Any = DEPLOYMENT) -> Any:
    return deployment["spec"]["template"]["spec"]


def patched(overlay: Path) -> Any:
    """The deployment as an overlay has it (RFC 6902, as far as it is used there)."""
    result = deepcopy(DEPLOYMENT)
    for step in yaml.safe_load(document(overlay / "kustomization.yaml")["patches"][0]["patch"]):
        *path, last = [part.replace("~1", "/") for part in step["path"].split("/")[1:]]
        place = result
        for part in path:
            place = place[int(part)] if isinstance(place, list) else place[part]
        if last == "-":
            place.append(step["value"])
            continue
        key = int(last) if isinstance(place, list) else last
        assert step["op"] == "add" or place[key]
        if step["op"] == "remove":
            del place[key]
        else:
            place[key] = step["value"]
    return result


def instructions() -> Iterator[tuple[str, str]]:
    lines = [line for line in DOCKERFILE.read_text().splitlines() if not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            name, _, rest = line.partition(" ")
            yield name, rest


def test_the_base_is_an_argument_and_no_host_is_named() -> None:
    assert re.match(r"ARG BASE_IMAGE=python:3\.11-slim(@sha256:[0-9a-f]{64})?\n", DOCKERFILE.read_text())
    text = "\n".join(f"{a} {b}" for a, b in instructions())
    assert not re.search(r"https?://|--extra-index-url|[a-z0-9]\.(io|com|org)/", text)
    stages = [base for name, base in instructions() if name == "FROM"]
    based = {base for base in stages if "BASE_IMAGE" in base}
    assert based == {"${BASE_IMAGE} AS packages", "${BASE_IMAGE} AS runtime-cpu"}
    assert stages[-1] == "runtime AS service"  # what is built where no target is named


def test_the_build_is_given_what_it_copies() -> None:
    """And nothing else: neither the models of this checkout, nor its tests, its history or its environment."""
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    given = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    copied = [words.split()[:-1] for name, words in instructions() if name == "COPY" and "--from" not in words]
    paths = [word.replace("${MODELS}", "models") for words in copied for word in words if not word.startswith("--")]
    result = {path.partition("/")[0] for path in paths}
    assert ignored[1] == "*" and given == result


LOCKED = re.compile(r"([a-z0-9-]+)==([^ ;\\\n]+)([^\\\n]*)((?: \\\n    --hash=sha256:[0-9a-f]{64})*)\n")
"""An entry of a lock file: name, version, marker, hashes."""


def locked(name: str) -> dict[str, str]:
    """Versions by package. Every entry of a lock file must have this form."""
    text = (ROOT / "requirements" / f"{name}.lock").read_text()
    entries = list(LOCKED.finditer(text))
    assert text.partition("\n")[2] == "".join(entry[0] for entry in entries)
    assert name == "development" or all(entry[4] for entry in entries), "an entry without a hash"
    return {entry[1]: entry[2] for entry in entries}


def test_locks_agree_and_have_hashes() -> None:
    versions = locked("development")
    service, torch, cuda, cpu = map(locked, ("service", "torch", "torch-cuda", "torch-cpu"))
    assert cpu == {"torch": cuda["torch"] + "+cpu"}
    for name, version in [*service.items(), *torch.items(), *cuda.items()]:
        assert versions[name] == version
    assert len(service | torch | cuda) == len(service) + len(torch) + len(cuda)
    assert "sympy" in torch
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert build == [f"hatchling=={locked('release')['hatchling']}"]


def test_every_package_of_the_image_is_installed_by_hash() -> None:
    parts = [part for name, words in instructions() if name == "RUN" for part in words.split("&&")]
    installs = [part for part in parts if " install --no" in part]
    assert len(installs) == 5
    for install in installs:
        assert ("--require-hashes" in install) != ("--no-index" in install), install


def test_the_release_pins_the_base_image(tmp_path: Path) -> None:
    digest = "sha256:" + "5" * 64
    for name in ("Dockerfile", "scripts/image.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    engine = tmp_path / "bin" / "docker"
    engine.parent.mkdir()
    engine.write_text(f'#!/bin/sh\ncase "$1" in image) echo docker.io/library/python@{digest} ;; esac\n')
    engine.chmod(0o755)
    for _ in range(2):  # a pinned file is pinned anew
        options = f"--work {tmp_path}/work --models {tmp_path} pin"
        command = ["bash", str(tmp_path / "scripts/image.sh"), *options.split()]
        environment = {**os.environ, "PATH": f"{engine.parent}:{os.environ['PATH']}"}
        subprocess.run(command, env=environment, check=True, capture_output=True)
    first = (tmp_path / "Dockerfile").read_text().splitlines()[0]
    assert first == f"ARG BASE_IMAGE=python:3.11-slim@{digest}"


def test_hadolint_finds_nothing() -> None:
    beside = Path(sys.executable).parent / "hadolint"
    hadolint = str(beside) if beside.exists() else shutil.which("hadolint")
    if hadolint is None:
        pytest.skip("hadolint is not installed")
    done = subprocess.run([hadolint, "--no-color", DOCKERFILE], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_only_the_image_for_gpus_has_torch_and_shows_the_gpus_of_its_host() -> None:
    """The packages of the other are those of service.lock. They are copied from a stage that DEVICE selects."""
    stages, showing = {}, []
    for name, words in instructions():
        if name == "FROM":
            base, _, stage = words.partition(" AS ")
            stages[stage] = base
        elif name == "ENV" and "NVIDIA_VISIBLE_DEVICES" in words:
            showing.append(stage)
    assert showing == ["runtime-cuda"] and stages["runtime-cuda"] == "runtime-cpu"
    assert stages["packages-cpu"] == "packages" and stages["environment"] == "packages-${DEVICE}"
    assert stages["packages-cuda"] == stages["packages-cpu-torch"] == "torch" and stages["torch"] == "packages"
    assert ("COPY", "--from=environment /venv /venv") in list(instructions())
    assert COMPOSE["cpu"]["build"]["args"] == {"DEVICE": "cpu"}


@pytest.mark.parametrize("version", ["1.30.0", "1.33.0", "1.36.0"])
def test_manifests_fit_the_schemas_of_kubernetes(version: str) -> None:
    validate = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed").validate
    assert set(RESOURCES) == {
        *("PersistentVolumeClaim", "Deployment", "Service", "PodDisruptionBudget", "HorizontalPodAutoscaler"),
        "NetworkPolicy",
    }
    others = [document(KEYS / "claim.yaml"), document(DEPLOY / "kubernetes" / "fill-models.yaml")]
    for item in [*MANIFESTS, *others, patched(CPU), patched(KEYS)]:
        validate(item, version, strict=True)


def test_manifests_know_each_other() -> None:
    listed = document(BASE / "kustomization.yaml")["resources"]
    assert {path.name for path in BASE.iterdir()} == {"kustomization.yaml", *listed}
    labels = DEPLOYMENT["spec"]["template"]["metadata"]["labels"]
    assert labels == DEPLOYMENT["spec"]["selector"]["matchLabels"] == RESOURCES["Service"]["spec"]["selector"]
    assert labels == RESOURCES["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"]
    scaler = RESOURCES["HorizontalPodAutoscaler"]["spec"]
    assert scaler["scaleTargetRef"]["name"] == DEPLOYMENT["metadata"]["name"]
    (metric,) = scaler["metrics"]
    gauges = {f"mt_{each.name}" for each in FLEET_METRICS if each.kind == "gauge"}
    assert metric["pods"]["metric"]["name"] in gauges
    (port,) = RESOURCES["Service"]["spec"]["ports"]
    (container,) = pod()["containers"]
    assert port["targetPort"] == container["ports"][0]["name"]
    claims = [volume["persistentVolumeClaim"]["claimName"] for volume in pod()["volumes"][:1]]
    assert claims == [RESOURCES["PersistentVolumeClaim"]["metadata"]["name"]]


def test_a_pod_is_hardened_and_outlives_its_drain() -> None:
    spec = pod()
    (container,) = spec["containers"]
    user = next(words for name, words in instructions() if name == "USER").partition(":")[0]
    assert spec["securityContext"]["runAsUser"] == int(user) > 0 and spec["securityContext"]["runAsNonRoot"]
    refused = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert container["securityContext"] == {**refused, "readOnlyRootFilesystem": True}
    pause = int(container["lifecycle"]["preStop"]["exec"]["command"][-1])
    assert spec["terminationGracePeriodSeconds"] > pause + DRAIN
    start = container["startupProbe"]
    assert start["periodSeconds"] * start["failureThreshold"] >= DEFAULTS["load_timeout_seconds"].default
    paths = {name: container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "readiness", "liveness")}
    assert paths == {"startup": "/readyz", "readiness": "/readyz", "liveness": "/livez"}


def test_overlays() -> None:
    assert pod()["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    (container,) = pod(patched(CPU))["containers"]
    assert "nvidia.com/gpu" not in container["resources"]["limits"]
    assert {"name": "MT_DEVICE", "value": "cpu"} in container["env"]
    spec = pod(patched(KEYS))
    (data,) = (volume for volume in spec["volumes"] if volume["name"] == "data")
    assert data["persistentVolumeClaim"]["claimName"] == document(KEYS / "claim.yaml")["metadata"]["name"]
    assert {"name": "MT_REQUIRE_KEY", "value": "true"} in spec["containers"][0]["env"]
    assert patched(KEYS)["spec"]["replicas"] == 1


def test_compose() -> None:
    """It passes every setting on, reserves the GPU, waits for the drain, and is closed unless it is opened."""
    (device,) = COMPOSE["gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert device["driver"] == "nvidia" and device["capabilities"] == ["gpu"]
    assert "deploy" not in COMPOSE["cpu"] and COMPOSE["cpu"]["profiles"]
    for service in COMPOSE.values():
        assert {*service["environment"], "MT_MODELS", "MT_HOST", "MT_PORT"} == {variable(name) for name in DEFAULTS}
        assert service["read_only"] and service["cap_drop"] == ["ALL"] and service["restart"] == "unless-stopped"
        assert int(service["stop_grace_period"].removesuffix("s")) > DRAIN
        assert service["ports"] == ["${MT_ADDRESS:-127.0.0.1}:${MT_PORT:-8000}:8000"]
        assert service["environment"]["MT_DATABASE"].startswith("/data/") and "data:/data" in service["volumes"]


DOCUMENTED = "\n".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("deploy.md", "operate.md"))
JOINED = re.sub(r"(`[^`\n]+)\n([^`\n]+`)", r"\1 \2", DOCUMENTED)


@pytest.mark.parametrize("command", sorted({*re.findall(r"docker compose [^`\n#&]*[^`\n#& ]", JOINED)}))
def test_documented_commands_fit_the_compose_file(command: str) -> None:
    """Files, services, folders of the container and the arguments of verbs; not the options of Docker itself."""
    words = shlex.split(command)
    if words[2] == "-f":
        assert (ROOT / words[3]).samefile(DEPLOY / "compose.yaml")
    services = COMPOSE.keys() & {*words}
    assert len(services) == 1 or "config" in words
    if "mt" in words:
        verb, *arguments = words[words.index("mt") + 1 :]
        assert {"keys": keys.parse, "memory": memory.parse}[verb](arguments)
    for name in services:
        mounted = re.findall(r":(/\w+)", " ".join(COMPOSE[name]["volumes"]))
        assert {*re.findall(r"(?<![\w.])(/[a-z]+)(?=/)", command)} <= {*mounted}


def test_names_in_the_documentation_fit_the_compose_file() -> None:
    file = document(DEPLOY / "compose.yaml")
    interpolated = {*re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text(encoding="utf-8"))}
    assert {"MODELS", "MT_ADDRESS"} <= interpolated
    assert {*re.findall(r"\bMT_[A-Z_]*[A-Z]\b", DOCUMENTED)} <= interpolated | {*map(variable, DEFAULTS)}
    assert {*re.findall(r"network inspect (\S+)", DOCUMENTED)} == {f"{file['name']}_default"}
    tagged = {*re.findall(r"docker tag (mt-service:\w+) ", DOCUMENTED)}
    assert tagged == {COMPOSE["cpu"]["image"]}


def test_pods_are_closed() -> None:
    policy = RESOURCES["NetworkPolicy"]["spec"]
    assert policy["podSelector"]["matchLabels"] == DEPLOYMENT["spec"]["template"]["metadata"]["labels"]
    assert policy["policyTypes"] == ["Ingress", "Egress"] and policy["egress"] == []
    (rule,) = policy["ingress"]
    assert all("namespaceSelector" not in peer and peer["podSelector"]["matchLabels"] for peer in rule["from"])
    assert {"name": "MT_DATABASE", "value": "/data/mt.sqlite"} in pod()["containers"][0]["env"]


NO_ENGINE = 77


def image(word: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", ROOT / "scripts" / "image.sh", word], capture_output=True, text=True)


@pytest.mark.image
@pytest.mark.slow
def test_the_image_keeps_its_promises() -> None:
    built = image("build")
    if built.returncode == NO_ENGINE:
        pytest.skip(built.stderr.strip())
    assert built.returncode == 0, built.stderr
    done = image("check")
    print(built.stderr, built.stdout, done.stderr, done.stdout)
    assert done.returncode == 0, done.stderr
    assert "FAIL" not in done.stderr and done.stderr.count("\nok ") >= 15
