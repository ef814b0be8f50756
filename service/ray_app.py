"""Serve models on a Ray cluster of any number of GPUs and machines, by the same HTTP application.

    pip install 'mt-service[ray]'                                 # on every machine
    ray start --head --disable-usage-stats                        # on the first; it prints the command for the others
    python -m service.ray_app --model MODEL --max-replicas 8      # on the first machine

The command has the options of `python -m service`, except --max-connections and the time limit of a request's head,
because the proxies of Ray Serve accept the connections. Logs of replicas are always JSON. Model directories need the
same path on every machine. The path of --database must be reachable from every machine, because `front` may run on any
of them. Anybody who can connect to a Ray cluster can run code on it: allow connections only between its machines, and
see Ray's RAY_AUTH_MODE=token.

Ray Serve runs two deployments. `front` is one process with the application: one queue, fairness between callers, one
database, one /metrics, and 503 with Retry-After under overload. `models` are replicas with a GPU each, or with
--threads CPU cores each (default: 1); the number of replicas grows with the number of texts being translated. Every
machine with a replica has a proxy that listens on --port.

If a replica of `models` or its machine dies, `front` sends its texts to another replica, and no request fails. If
`front` dies, the proxy repeats the requests to the new `front`. Then only streams that had begun are lost and, without
--database, documents that had not been fetched. If a proxy dies, its connections are lost.

At SIGTERM or Ctrl-C the service refuses new requests, answers the accepted requests and exits with status 0. A second
signal, or a signal during the loading of the models, ends it at once with status 130.
"""

import argparse
import logging
import re
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import Event
from typing import Any

import structlog

from mt.errors import MTError, problems
from service.hub_models import install_models
from service.logs import configure_logs
from service.program import parser
from service.ray_deployments import QUIET, Scale, application
from service.settings import Settings, SettingsError, load_settings

try:
    import ray
    from ray import serve
    from ray.exceptions import RayActorError, RayError, RayTaskError
    from ray.serve.exceptions import RayServeException
except ModuleNotFoundError:  # an optional dependency; `main` reports that it is missing
    ray = None

NAME = "mt"  # name of the application in Ray Serve
CALLBACK = "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH"  # variable that names the middleware of a proxy


def main(arguments: Sequence[str]) -> int:
    options = vars(option_parser().parse_args(arguments))
    address, least, most = (options.pop(name) for name in ("address", "min_replicas", "max_replicas"))
    try:
        if ray is None:
            raise SettingsError("ray is not installed. Run pip install 'mt-service[ray]'")
        settings = load_settings(options)
        configure_logs(not sys.stderr.isatty() if settings.log_json is None else settings.log_json)
        settings = resolved(install_models(settings))
        with connected(address):
            run(settings, scale_of(settings, least, most))
    except MTError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def option_parser() -> argparse.ArgumentParser:
    """Return the parser of `python -m service`, extended by the options of the cluster."""
    options = parser()
    options.prog, options.description = "python -m service.ray_app", __doc__
    options.add_argument("--address", default="auto", help="address of the cluster; auto: the cluster of this machine")
    options.add_argument(
        "--min-replicas", type=int, default=1, metavar="N", help="smallest number of model replicas (default: 1)"
    )
    most = "(default: as many as the cluster has room for)"
    options.add_argument("--max-replicas", type=int, default=None, metavar="N", help=most)
    return options


@contextmanager
def connected(address: str) -> Iterator[None]:
    """Connect to a Ray cluster while the context is open. Raises: SettingsError if the connection fails."""
    try:
        ray.init(address=address, logging_level=logging.WARNING)
    except (ConnectionError, RuntimeError, ValueError) as error:
        problem = f"no Ray cluster at {address!r}: {error}; accepted: auto or HOST:PORT. `ray start --head` starts one"
        raise SettingsError(problem) from error
    try:
        yield
    finally:
        ray.shutdown()


def scale_of(settings: Settings, min_replicas: int, max_replicas: int | None) -> Scale:
    """Return the number of replicas and the resources of each: a GPU if the cluster has GPUs, otherwise CPU cores.

    Raises: SettingsError if the cluster does not have the device of the settings, or the numbers of replicas are not
        valid.
    """
    resources = ray.cluster_resources()
    gpus, cores, cpus = int(resources.get("GPU", 0)), int(resources.get("CPU", 0)), settings.threads or 1
    on_gpus = settings.device == "cuda" or (settings.device == "auto" and gpus > 0)
    if max_replicas is None:
        max_replicas = max(min_replicas, gpus if on_gpus else cores // cpus)
    invalid = []
    if settings.device == "cuda" and not gpus:
        invalid.append("--device is 'cuda', but the cluster has no GPU; accepted: auto or cpu")
    if settings.device not in ("auto", "cpu", "cuda"):
        invalid.append(f"--device is {settings.device!r}; accepted: auto, cpu or cuda: Ray assigns GPUs to replicas")
    if not 1 <= min_replicas <= max_replicas:
        invalid.append(
            f"--min-replicas is {min_replicas} and --max-replicas is {max_replicas}; accepted: a --min-replicas from 1 "
            "to --max-replicas"
        )
    if invalid:
        raise SettingsError(problems("the settings cannot be used", invalid))
    return Scale(min_replicas, max_replicas, gpus=int(on_gpus), cpus=cpus)


def run(settings: Settings, scale: Scale) -> None:
    """Serve until SIGTERM or SIGINT, and remove the application from the cluster at the end, also after an error.

    Raises: SettingsError if the service cannot start; KeyboardInterrupt at a second signal, or at a signal while models
    are loaded.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    _end_previous()
    log = structlog.get_logger()
    try:
        _start_serve({"host": settings.host, "port": settings.port, "root_path": settings.root_path})
        _deploy(settings, scale)
        with suppress(KeyboardInterrupt):
            log.info("listening", host=settings.host, port=settings.port, replicas=scale.min_replicas)
            Event().wait()
        log.info("stopping")
        if not _drain():
            log.error("not answered in time")
    finally:
        _delete()
    log.info("stopped")


def _end_previous() -> None:
    """Shut down a Ray Serve that an earlier run has left, because a running Ray Serve cannot change its host and port.

    Raises: SettingsError if Ray Serve runs other applications.
    """
    others = set(serve.status().applications) - {NAME}
    if others:
        raise SettingsError(
            f"Ray Serve runs other applications on this cluster ({', '.join(sorted(others))}). `serve shutdown` ends "
            "these applications"
        )
    serve.shutdown()


def _start_serve(http_options: dict[str, Any]) -> None:
    """Start Ray Serve with a proxy on every machine that has a replica.

    Raises: SettingsError if a proxy cannot listen on the address.
    """
    try:
        serve.start(
            proxy_location="EveryNode",
            http_options=http_options,
            controller_options={"runtime_env": {"env_vars": {CALLBACK: "service.replay.middleware"}}},
            logging_config=QUIET,
        )
    except (RayError, TimeoutError) as error:
        problem = str(error.cause if isinstance(error, RayTaskError) else error).rstrip(".")
        raise SettingsError(
            f"Ray Serve cannot listen on {http_options['host']}, port {http_options['port']}: {problem}; accepted: an "
            "address of every machine of the cluster, and a port that is free on all of them"
        ) from error


def _deploy(settings: Settings, scale: Scale) -> None:
    """Start the application and wait until its models are loaded. Raises: SettingsError if a model cannot be used."""
    try:
        serve.run(application(settings, scale), name=NAME)
    except RuntimeError as error:
        messages = [deployment.message for deployment in serve.status().applications[NAME].deployments.values()]
        raise SettingsError(problem_of(messages) or str(error)) from error


def _drain() -> bool:
    """Refuse new requests and wait for the accepted requests; return whether all of them were answered in time."""
    try:
        return bool(serve.get_app_handle(NAME).drain.remote().result())
    except RayActorError:
        return False


def _delete() -> None:
    with suppress(RayServeException):  # Ray Serve has not started
        try:
            serve.delete(NAME)
        except TimeoutError:  # the following shutdown ends the application
            structlog.get_logger().error("not ended in time")
        serve.shutdown()


def problem_of(messages: Iterable[str]) -> str:
    """Return the message of this project's error in `messages`, the tracebacks that Ray Serve reports.

    It is the last such error in the first traceback that contains one. Return "" if no traceback contains one.
    """
    for message in messages:
        if problems_found := re.findall(r"^(?:mt|service)\.[\w.]+: (.+)", message, re.MULTILINE | re.DOTALL):
            return str(problems_found[-1])
    return ""


def resolved(settings: Settings) -> Settings:
    """Return the settings with absolute paths, because replicas have other working directories."""
    paths = {name: path.resolve() for name in ("models", "database") if (path := getattr(settings, name))}
    return settings.model_copy(update={"model": tuple(path.resolve() for path in settings.model), **paths})


if __name__ == "__main__":  # import the module by name: Ray would copy the code of __main__ to other machines
    sys.exit(import_module("service.ray_app").main(sys.argv[1:]))
