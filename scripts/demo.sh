#!/usr/bin/env bash
# From nothing to a translation service: sets up, trains on the embedded corpus, shows how good the model is, serves it.
#   bash scripts/demo.sh            and keeps serving, until Ctrl-C
#   bash scripts/demo.sh --check    and stops after one answer
# MT_PORT is the port to serve on (8000); if it is taken, the next free one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage="usage: bash scripts/demo.sh [--check]"
case "${1:-}" in
    "" | --check) mode=${1:-} ;;
    -h | --help)
        echo "$usage"
        exit 0
        ;;
    *)
        echo "$usage" >&2
        exit 2
        ;;
esac

export MT_DATA=data
python=.venv/bin/python
recipe=scripts/recipes/phrasebook.toml
run=runs/phrasebook-en-de
model=$run/model
body='{"q": "Where is the train station?", "source": "en", "target": "de"}'

say() {
    printf '\n== %s\n' "$*"
}

free_port() { # free_port FIRST: the first port from there on that nobody listens on
    "$python" - "$1" << 'END'
import socket, sys

for port in range(int(sys.argv[1]), 65536):
    with socket.socket() as candidate:
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind(("127.0.0.1", port))
        except OSError:
            continue
    print(port)
    break
else:
    sys.exit("no free port")
END
}

request() { # request URL [JSON]: what the service answers to GET, or to POST of the JSON
    if command -v curl > /dev/null; then
        curl --silent --show-error --fail --noproxy '*' "$1" ${2:+-H "Content-Type: application/json" -d "$2"}
    else
        "$python" - "$@" << 'END'
import sys
from urllib.request import ProxyHandler, Request, build_opener

url, *body = sys.argv[1:]
headers = {"Content-Type": "application/json"}
try:
    answer = build_opener(ProxyHandler({})).open(Request(url, *[text.encode() for text in body], headers=headers))
except OSError as error:
    sys.exit(str(error))
print(answer.read().decode(), end="")
END
    fi
}

bash scripts/setup.sh

say "Writing the embedded English-German phrasebook"
"$python" scripts/fetch_data.py phrasebook

if [ -f "$model/config.json" ]; then
    say "$model is there already, so nothing is trained. To train anew: rm -r $run"
else
    "$python" scripts/prepare.py "$recipe"
    say "Training (some minutes)"
    # Always two processes, so that every machine trains the same model. --resume goes on where an interrupted demo stopped.
    "$python" scripts/train.py "$recipe" --resume --device cpu --processes 2
fi

say "Scoring on sentences whose combinations of words and constructions were held out of training"
"$python" scripts/evaluate.py "$model" --tsv "$MT_DATA/phrasebook/test.tsv" --columns en,de,construction \
    --by construction --show 12 > "$run/scores.json"

port=$(free_port "${MT_PORT:-8000}")
say "Serving $model on port $port"
"$python" -m service --model "$model" --port "$port" &
service=$!
stop() {
    kill "$service" 2> /dev/null || true
    wait "$service" 2> /dev/null || true
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

for _ in $(seq 120); do
    if request "http://127.0.0.1:$port/health" > /dev/null 2>&1; then
        break
    fi
    if ! kill -0 "$service" 2> /dev/null; then
        echo "The service stopped before it answered; its message is above." >&2
        exit 1
    fi
    sleep 0.5
done

say "Asking it"
cat << END
curl http://localhost:$port/translate -H "Content-Type: application/json" \\
    -d '$body'
END
request "http://127.0.0.1:$port/translate" "$body"
echo

if [ "$mode" = --check ]; then
    exit 0
fi
say "Serving on http://localhost:$port until Ctrl-C"
wait "$service"
