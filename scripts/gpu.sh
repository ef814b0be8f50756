#!/usr/bin/env bash
# Measures the system on a GPU for the first time: correctness, then speed, then memory.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

usage() {
    cat << 'END'
usage: bash scripts/gpu.sh [DIR] [--device NAME]

Checks and measures this checkout on a GPU in about 45 minutes, the most important first. Each part runs in a process of
its own for at most 10 minutes and writes JSON and Markdown to DIR (default: gpu-results). Needs no network.
MT_PYTHON is the Python to use (default: .venv/bin/python, or else python3).
END
}

output=gpu-results device=cuda
while [ $# -gt 0 ]; do
    case "$1" in
        --device)
            device=${2:?--device needs a name}
            shift
            ;;
        -h | --help)
            usage
            exit 0
            ;;
        -*)
            usage >&2
            exit 2
            ;;
        *) output=$1 ;;
    esac
    shift
done
python=${MT_PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}

missing=$("$python" - << 'END'
from importlib.util import find_spec

needed = "torch numpy sentencepiece safetensors pydantic rich matplotlib langcodes filelock pytest hypothesis"
print(*(name for name in needed.split() if find_spec(name) is None))
END
) || exit
if [ -n "$missing" ]; then
    echo "missing packages: $missing; bash scripts/setup.sh dev installs them" >&2
    exit 1
fi

mkdir -p "$output"
failed=()
part() {
    local name=$1
    shift
    echo "== $name: $*"
    if ! timeout 600 "$@" > "$output/$name.log" 2>&1; then
        failed+=("$name")
        tail -n 5 "$output/$name.log"
    fi
}
measure() {
    part "$1" "$python" -m mt benchmark gpu --part "$1" --device "$device" --output "$output"
}

measure correctness
part tests "$python" -m pytest -m gpu -q -p no:cacheprovider --junit-xml "$output/tests.xml" tests/engine
for name in training decoding replay attention memory; do
    measure "$name"
done
translate=("$python" -m mt translate mt/bundled/starter "$output/lines.en" --source en --target de --device "$device")
cut -f 1 tests/frozen/lines.tsv > "$output/lines.en"
printf 'woman\tDame\n' > "$output/glossary.tsv"
part translate-graphs "${translate[@]}" --backend auto
part translate-torch "${translate[@]}" --backend torch
part translate-glossary "${translate[@]}" --glossary "$output/glossary.tsv"
cat "$output"/*.md > "$output/all-parts.markdown" 2> /dev/null
if [ ${#failed[@]} -gt 0 ]; then
    echo "FAILED: ${failed[*]}; the logs are in $output" >&2
    exit 1
fi
echo "Every part finished; the results are in $output."
