#!/usr/bin/env bash
# Sets up the project, trains a model on the embedded corpus, evaluates it, and serves it and the starter model.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat << 'END'
usage: bash scripts/demo.sh [--check]

Sets up the project, trains a model on the embedded English-German corpus (one to three minutes on two cores),
evaluates it, and serves the starter model and, by its name, the trained one until Ctrl-C.

  --check    train for 20 updates only, in a separate run directory, and stop after two requests

MT_PORT is the port of the service (default: 8000); if it is taken, the next free port is used.
END
}
case "${1:-}" in
    "" | --check) mode=${1:-} ;;
    -h | --help)
        usage
        exit 0
        ;;
    *)
        usage >&2
        exit 2
        ;;
esac

export MT_DATA=data
python=.venv/bin/python
name=phrasebook # the recipe has 1,100 updates (98 BLEU); 300 give 80 BLEU in a quarter of the time
settings=(training.{max_updates,validate_every}"=300" training.cooldown_updates=180 training.warmup_updates=60)
settings+=(training.save_every=30)
if [ "$mode" = --check ]; then
    name=phrasebook-check
    settings=("name=$name" training.{max_updates,validate_every,save_every}"=20" training.{warmup,cooldown}_updates=10)
    settings+=(training.{keep,average}_checkpoints=1)
fi
recipe=scripts/recipes/phrasebook.toml
run=runs/$name-en-de
model=$run/model
requests=( # the starter model answers the first one, because it is the first of --model below
    '{"q": "Where can I park the car?", "source": "en", "target": "fr"}'
    '{"q": "Where is the train station?", "source": "en", "target": "de", "model": "'"$name"'-en-de"}'
)

say() {
    printf '\n== %s\n' "$*"
}

free_port() { # free_port FIRST: the first free port, from FIRST on
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

request() { # request URL [JSON]: send GET, or POST with the JSON, and print the answer
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
"$python" -m mt fetch phrasebook

if [ -f "$model/config.json" ]; then
    say "$model exists, so nothing is trained. To train again: rm -r $run"
else
    "$python" -m mt prepare "$recipe" "${settings[@]}"
    say "Training (one to three minutes)"
    [ ! -e "$run/recipe.toml" ] || settings+=(--resume) # the demo was interrupted
    # Always two processes, so that every machine trains the same model.
    "$python" -m mt train "$recipe" "${settings[@]}" --device cpu --processes 2
fi

say "Evaluating on combinations of words and constructions that are not in the training text"
"$python" -m mt evaluate "$model" --tsv "$MT_DATA/phrasebook/test.tsv" --columns en,de --show 12 > "$run/scores.json"

port=$(free_port "${MT_PORT:-8000}")
starter=mt/bundled/starter
say "Serving the model starter ($starter) and, by its name, $name-en-de ($model) on port $port"
log=$run/service.log # its lines would stand between the requests and their answers
"$python" -m mt serve --model "$starter,$model" --port "$port" 2> "$log" &
service=$!
stop() {
    kill "$service" 2> /dev/null || true
    wait "$service" 2> /dev/null || true
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

until request "http://127.0.0.1:$port/health" > /dev/null 2>&1; do
    if ! kill -0 "$service" 2> /dev/null; then
        cat "$log" >&2
        echo "The service stopped before it answered." >&2
        exit 1
    fi
    sleep 0.5
done

say "Sending a request to each model"
for body in "${requests[@]}"; do
    cat << END
curl http://localhost:$port/translate -H "Content-Type: application/json" \\
    -d '$body'
END
    request "http://127.0.0.1:$port/translate" "$body"
    echo
done

if [ "$mode" = --check ]; then
    exit 0
fi
say "Serving on http://localhost:$port until Ctrl-C (log: $log). Next: open that page, or import a model (README.md)"
wait "$service"
