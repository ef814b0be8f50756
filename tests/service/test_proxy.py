"""The files of service/deploy for a server of one's own: nginx in front of the service, and the systemd unit."""

import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest

from scripts.attack.target import ServiceProcess, form, running
from service.errors import BodyTooLarge
from service.program import parser
from tests.conftest import free_port

DEPLOY = Path(__file__).resolve().parents[2] / "service" / "deploy"
NGINX = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
SYSTEMD_ANALYZE = shutil.which("systemd-analyze")
HOST = {"Host": "translate.example.org"}
CONFIGURATION = """
daemon off; master_process off; error_log stderr; pid {folder}/pid;
events {{ worker_connections 2048; }}
http {{
    access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    {server}
}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nginx")


@pytest.fixture(scope="module")
def unencrypted() -> int:
    """The port that stands for 80."""
    return free_port()


Proxied = tuple[ServiceProcess, ServiceProcess]


@pytest.fixture(scope="module")
def proxied(folder: Path, unencrypted: int) -> Iterator[Proxied]:
    """The service, and the same behind nginx on another port, without TLS and with shorter time limits."""
    if NGINX is None:
        pytest.skip("nginx is not installed")
    settings = {
        "MT_TRUSTED_PROXIES": "127.0.0.1",
        "MT_ALLOWED_HOSTS": "translate.example.org",
        "MT_ROOT_PATH": "/translator",
        "MT_ADMIN_KEY": "a" * 20,
    }
    with running(settings, ready=False) as service:
        port = free_port()
        server = (DEPLOY / "nginx" / "mt-service.conf").read_text()
        server = re.sub(r"\n    ssl_[^\n]*", "", server).replace("listen 443 ssl", f"listen 127.0.0.1:{port}")
        server = server.replace("listen 80", f"listen 127.0.0.1:{unencrypted}")
        server = server.replace("127.0.0.1:8000", f"127.0.0.1:{service.port}").replace("_timeout 10s", "_timeout 1s")
        server = server.replace("rate=20r/s", "rate=1r/s")
        server = server.replace("/var/log/nginx", str(folder))
        (folder / "nginx.conf").write_text(CONFIGURATION.format(folder=folder, server=server))
        process = subprocess.Popen([NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf")])
        proxy = ServiceProcess(service.process, port, service.logs)
        while proxy.request("GET", "/translator/readyz", headers=HOST).status != 200:
            assert process.poll() is None
            time.sleep(0.1)
        yield service, proxy
        process.terminate()
        process.wait()


def test_a_browser_is_led_to_https(proxied: Proxied, unencrypted: int) -> None:
    with closing(HTTPConnection("127.0.0.1", unencrypted)) as connection:
        connection.request("GET", "/translator/?q=a", headers={"Host": "elsewhere.invalid"})
        answer = connection.getresponse()
        assert (answer.status, answer.headers["Location"]) == (301, "https://translate.example.org/translator/?q=a")


def test_requests_pass_with_their_address_and_the_prefix(proxied: Proxied) -> None:
    service, proxy = proxied
    body = b'{"q": "The dog.", "source": "en", "target": "de"}'
    headers = {**HOST, "Content-Type": "application/json", "X-Forwarded-For": "192.0.2.1"}
    answer = proxy.request("POST", "/translator/translate", body, headers, caller="127.0.0.9")
    assert answer.status == 200, answer.body
    while not (lines := [line for line in service.events("request") if line["route"] == "/translate"]):
        time.sleep(0.01)
    assert lines[-1]["caller"] == "127.0.0.9"  # not the forged one
    content, kind = form({"source": "en", "target": "de"}, "a.txt", b"A dog.")
    stored = proxy.request("POST", "/translator/translate_file", content, HOST | kind)
    url = stored.json["translatedFileUrl"]
    assert url.startswith("http://translate.example.org/translator/download_file/")
    assert proxy.request("GET", url.removeprefix("http://translate.example.org"), headers=HOST).status == 200


def test_the_logs_of_the_proxy_have_no_secrets(proxied: Proxied, folder: Path) -> None:
    logged = {
        "/translator/translate?q=SECRET&source=en&target=de&api_key=SECRET": "/translator/translate",
        "/translator/download_file/SECRET.SECRET.txt": "/translator/download_file/...",
        "/translator/v2/document/SECRET/result": "/translator/v2/document/...",
        "/translator/memories/SECRET": "/translator/memories/...",
        "/translator/v3/glossaries/SECRET": "/translator/v3/glossaries/...",
        "/translator/v3/translation_memories/SECRET/exports/SECRET": "/translator/v3/translation_memories/...",
    }
    for path in logged:
        proxied[1].request("POST", path, headers={**HOST, "Referer": "http://a/SECRET"}, caller="127.0.0.6")
    logs = {path.name: path.read_text() for path in folder.glob("*.log")}
    assert re.findall(r'127\.0\.0\.6 .* POST "(.*)"', logs["mt-service.log"]) == list(logged.values())
    assert "SECRET" not in str(logs)


@pytest.mark.parametrize(
    ("path", "status"), [("/translator/admin/reload", 404), ("/translator/metrics", 200), ("/livez", 404)]
)
def test_paths_that_the_proxy_keeps_to_itself(proxied: Proxied, path: str, status: int) -> None:
    assert proxied[1].request("GET", path, headers=HOST, caller="127.0.0.1").status == status


def test_metrics_are_for_the_own_network(proxied: Proxied) -> None:
    for path in ("/metrics", "/metrics/", "//metrics", "/metrics%2f", "/x/../metrics"):
        asked = proxied[1].request("GET", f"/translator{path}", headers=HOST, caller="127.0.0.9")
        assert asked.status == 403, path


def test_what_the_proxy_refuses_does_not_reach_the_service(proxied: Proxied) -> None:
    service, proxy = proxied
    address, caller = ("127.0.0.1", proxy.port), "127.0.0.5"
    large = b"POST /translator/translate HTTP/1.1\r\nHost: translate.example.org\r\nContent-Length: 12000000\r\n\r\n"
    with socket.create_connection(address, 60, (caller, 0)) as connection:
        connection.sendall(large)
        answer = HTTPResponse(connection)
        answer.begin()
        problem = json.load(answer)
        assert (answer.status, problem["code"]) == (413, BodyTooLarge.code)
        assert problem["error"] == "The request is too large"
    with socket.create_connection(address, 60, (caller, 0)) as connection:
        connection.sendall(
            b"POST /translator/translate HTTP/1.1\r\nHost: translate.example.org\r\nContent-Length: 5\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n"
        )
        assert connection.recv(1000).startswith(b"HTTP/1.1 400")
    post = b"POST /translator/translate HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\na"
    for slow in (b"GET /translator/livez HT", post):
        with socket.create_connection(address, 60, (caller, 0)) as connection:
            connection.sendall(slow)
            with suppress(ConnectionResetError):
                while connection.recv(1000):  # closed by the proxy
                    pass
    assert proxy.request("GET", "/translator/languages", headers=HOST, caller=caller).status == 200
    while not (lines := [line for line in service.events("request") if line["caller"] == caller]):
        time.sleep(0.01)
    assert [line["route"] for line in lines] == ["/languages"]


def test_a_flood_of_one_address_is_refused_with_429(proxied: Proxied) -> None:
    def status(caller: str) -> int:
        return proxied[1].request("GET", "/translator/languages", headers=HOST, caller=caller).status

    assert {status("127.0.0.8") for _ in range(150)} == {200, 429}
    assert status("127.0.0.7") == 200


@pytest.mark.skipif(SYSTEMD_ANALYZE is None, reason="systemd-analyze is not installed")
def test_the_unit_is_valid_and_runs_an_existing_command(tmp_path: Path) -> None:
    unit = (DEPLOY / "systemd" / "mt-service.service").read_text()
    program, verb, *options = re.findall(r"ExecStart=(.*)", unit)[0].split()
    assert (Path(program).name, verb) == ("mt-service", "serve")
    assert vars(parser().parse_args(options)) == {"database": "/var/lib/mt-service/mt.sqlite"}
    (tmp_path / "mt-service.service").write_text(unit.replace(program, "/bin/true"))
    assert SYSTEMD_ANALYZE is not None
    done = subprocess.run([SYSTEMD_ANALYZE, "verify", tmp_path / "mt-service.service"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
