#!/usr/bin/env bash
# Runs the test suites of LibreTranslate and of DeepL's clients against this service.
set -uo pipefail

usage() {
    cat << 'END'
usage: bash scripts/peer_suites.sh FOLDER [OPTION ...]

Starts `mt-service serve OPTION ...` with a key, and runs the suites whose sources are in FOLDER against it:

  FOLDER/LibreTranslate   libretranslate/tests/test_api; the service needs models for en and es
  FOLDER/deepl-python     tests; the service needs models that translate its texts
  FOLDER/deepl-node       tests, one jest process for each file; after `npm install`

A suite that is absent is named. The exit status is that of the last suite that failed.
END
}

if [ $# -eq 0 ] || [ ! -d "$1" ]; then
    usage >&2
    exit 2
fi
folder=$(realpath "$1")
shift
work=$(mktemp -d)
trap 'kill "${service:-}" 2> /dev/null; rm -rf "$work"' EXIT

mt-service keys add peers --database "$work/service.db" > "$work/key" 2> /dev/null || exit
DEEPL_AUTH_KEY=$(grep -o 'mt_[A-Za-z0-9_-]*' "$work/key")
mt-service serve --database "$work/service.db" --suggestions true --port 0 --log-json true "$@" 2> "$work/log" &
service=$!
until port=$(grep -o '"port": [0-9]*' "$work/log" | grep -o '[0-9]*'); do
    if ! kill -0 "$service" 2> /dev/null; then
        cat "$work/log" >&2
        exit 2
    fi
    sleep 0.2
done
export DEEPL_AUTH_KEY DEEPL_SERVER_URL="http://127.0.0.1:$port" NO_PROXY=127.0.0.1 no_proxy=127.0.0.1
status=0

if [ -d "$folder/LibreTranslate" ]; then
    cat > "$work/peer_client.py" << 'END'
"""The fixtures of LibreTranslate's tests, over HTTP."""

import os
from types import SimpleNamespace

import httpx
import pytest


@pytest.fixture
def client():
    with httpx.Client(base_url=os.environ["DEEPL_SERVER_URL"], trust_env=False, timeout=60) as http:

        def sender(method):
            def send(path, data=None, content_type=None, **fields):
                sent = {name: value for name, value in (data or {}).items() if not isinstance(value, tuple)}
                files = {name: value[::-1] for name, value in (data or {}).items() if name not in sent}
                answer = http.request(method, path, data=sent, files=files, **fields)
                is_json = "json" in answer.headers.get("content-type", "")
                json = answer.json() if is_json else None
                return SimpleNamespace(status_code=answer.status_code, data=answer.content, json=json)

            return send

        yield SimpleNamespace(**{method: sender(method) for method in ("get", "post")})


@pytest.fixture
def client_factory():
    pytest.skip("sets options of LibreTranslate")
END
    PYTHONPATH="$work:${PYTHONPATH:-}" python -m pytest -q -p no:cacheprovider -p peer_client --noconftest \
        "$folder/LibreTranslate/libretranslate/tests/test_api" || status=$?
else
    echo "absent: $folder/LibreTranslate"
fi
if [ -d "$folder/deepl-python" ]; then
    (cd "$folder/deepl-python" && python -m pytest -q -p no:cacheprovider tests) || status=$?
else
    echo "absent: $folder/deepl-python"
fi
if [ -d "$folder/deepl-node" ]; then
    for file in "$folder"/deepl-node/tests/*.test.ts; do
        (cd "$folder/deepl-node" && npx jest "$file") || status=$? # one process for all would share its forbidden network
    done
else
    echo "absent: $folder/deepl-node"
fi
exit "$status"
