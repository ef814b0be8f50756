#!/usr/bin/env bash
# shellcheck disable=SC2317 # `step` and `check` call functions by name
# Builds the container image, runs it with all restrictions, and checks it.
#   bash scripts/image.sh [OPTION ...] [VERB]
#
#   (none)           build and check; prints a table of times and sizes
#   build            build only
#   check            check the image that was built
#   speed FILE       compare the speed of the image with .venv on a file of sentences, in alternating runs
#   engine WORD ...  run podman or docker with the settings of this script, such as: engine images
#   pin              write the digest of the base image into the Dockerfile
#   clean            remove the build cache
#
#   --device NAME        cpu (without torch), cpu-torch or cuda (cpu)
#   --torch-index URL    index of builds of torch for CPUs, for cpu-torch and demo, unless the settings of pip name one
#   --target NAME        service, demo (includes a model trained during the build) or baked (includes ./models) (service)
#   --tag NAME           tag of the image (localhost/mt-service:DEVICE, or :TARGET)
#   --models FOLDER      models for the checks (tests/frozen; for demo and baked, those in the image)
#   --base IMAGE         base image instead of the one in Dockerfile
#   --work FOLDER        folder of the build cache (mt-image in TMPDIR, or in /var/tmp)
#   --install            install podman with apt-get if there is no engine (as root, on Debian)
#
# The script uses docker if its daemon answers, otherwise podman. If no registry can be reached, it builds a substitute
# of the base image from Debian packages with mmdebstrap, and says so. The pip settings of this machine are passed to the
# build as a secret. Exit status: 1 if a check failed, 2 for wrong usage, 77 if no engine works.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

device=cpu torch_index='' target=service tag='' models='' base='' work=${TMPDIR:-/var/tmp}/mt-image install=no
standin=localhost/mt-standin:python3.11
packages=(podman runc mmdebstrap)
declare -A budget=([cpu]=215000000 [cpu-torch]=1400000000 [cuda]=6900000000) # bytes beside those of the base image
ready_within=10 goodbye=40                                                    # seconds
base_label=org.opencontainers.image.base.name
as_fast=0.95                                           # of this machine's speed

usage() { sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; }
say() { printf '%s\n' "$*" >&2; }
fail() { # fail STATUS MESSAGE
    say "$2"
    exit "$1"
}

failed=0 table=()
check() { # check TEXT COMMAND ...
    if "${@:2}" > "$logs/check.log" 2>&1; then say "ok    $1"; else
        say "FAIL  $1"
        tail -5 "$logs/check.log" >&2
        failed=1
    fi
}
figure() { table+=("$(printf '%-28s %s' "$1" "$2")"); }
step() { # step NAME COMMAND ...: writes the command's output to a log and its seconds to the table
    local begun=$EPOCHREALTIME
    if ! "${@:2}" > "$logs/$1.log" 2>&1; then
        tail -30 "$logs/$1.log" | cut -c1-300 >&2
        fail 1 "FAIL  $1 (the whole log is $logs/$1.log)"
    fi
    figure "$1, seconds" "$(awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')"
}

find_engine() { # sets `engine`, an array
    if command -v docker > /dev/null && docker info > /dev/null 2>&1; then
        engine=(docker)
        return
    fi
    if ! command -v podman > /dev/null && [ "$install" = yes ]; then
        say "Installing ${packages[*]} with apt-get."
        { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install --yes -qq --no-install-recommends \
            "${packages[@]}"; } > /dev/null || fail 77 "apt-get could not install them."
    fi
    command -v podman > /dev/null ||
        fail 77 "Neither a docker daemon nor podman is available. Install podman: apt-get install ${packages[*]}, or --install"
    engine=(podman)
    if [ ! -d /run/systemd/system ]; then
        lone_podman
    fi
}

lone_podman() { # configures podman for a machine without systemd, such as a container, with its own store
    local files processes driver=vfs probe=$work/probe
    files=$(ulimit -Hn) processes=$(ulimit -Hu)
    [ "$files" != unlimited ] || files=65536
    { [ "$processes" != unlimited ] && [ "$processes" -lt 4096 ]; } || processes=4096
    mkdir -p "$probe"/{lower,upper,scratch,merged}
    if mount -t overlay overlay "$probe/merged" \
        -o "lowerdir=$probe/lower,upperdir=$probe/upper,workdir=$probe/scratch" 2> /dev/null; then
        umount "$probe/merged"
        driver=overlay
    fi
    printf '%s\n' '[storage]' "driver = \"$driver\"" "graphroot = \"$work/store\"" "runroot = \"$work/run\"" \
        > "$work/storage.conf"
    printf '%s\n' '[containers]' "default_ulimits = [\"nofile=$files:$files\", \"nproc=$processes:$processes\"]" \
        '[engine]' 'runtime = "runc"' 'cgroup_manager = "cgroupfs"' 'events_logger = "file"' "tmp_dir = \"$work/tmp\"" \
        > "$work/containers.conf"
    export CONTAINERS_STORAGE_CONF=$work/storage.conf CONTAINERS_CONF=$work/containers.conf
}

choose_base() { # sets `base`
    [ -z "$base" ] || return 0
    base=$(sed -n '1s/^ARG BASE_IMAGE=//p' "$root/Dockerfile")
    if "${engine[@]}" image inspect "$base" > /dev/null 2>&1 ||
        timeout 300 "${engine[@]}" pull --quiet "$base" > "$logs/pull.log" 2>&1; then
        return
    fi
    say "STAND-IN: $base cannot be pulled; the image is built on Debian packages instead."
    base=$standin
    if ! "${engine[@]}" image inspect "$standin" > /dev/null 2>&1; then
        command -v mmdebstrap > /dev/null || fail 77 "mmdebstrap is missing: apt-get install mmdebstrap"
        step stand-in make_standin
    fi
}

pin() { # writes the present digest of the base image into the Dockerfile
    local name digest
    name=${base:-$(sed -n '1s/^ARG BASE_IMAGE=//p' "$root/Dockerfile")}
    name=${name%@*}
    "${engine[@]}" pull --quiet "$name" > "$logs/pull.log" 2>&1 || fail 1 "$name cannot be pulled, see $logs/pull.log"
    digest=$("${engine[@]}" image inspect "$name" --format '{{index .RepoDigests 0}}')
    digest=${digest##*@}
    [[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] || fail 1 "$name has no SHA-256 digest: ${digest:-none}"
    sed -i "1s|.*|ARG BASE_IMAGE=$name@$digest|" "$root/Dockerfile"
    say "Dockerfile: $name@$digest"
}

make_standin() { # an image of the Debian release with Python 3.11, with the paths of the base image
    local sources=() listed=/etc/apt/sources.list.d/debian.sources
    if grep -qs '^Suites:.*bookworm' "$listed"; then
        sources=("$listed") # perhaps a mirror
    fi
    # shellcheck disable=SC2016 # the hook expands $1
    mmdebstrap --mode=root --variant=minbase --include=ca-certificates,python3,python3-pip,python3-venv \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
        --customize-hook='ln -s /usr/bin/python3 "$1/usr/local/bin/python"' \
        --customize-hook='rm -f "$1/etc/resolv.conf" "$1/etc/hostname" "$1"/usr/lib/python3*/EXTERNALLY-MANAGED' \
        bookworm "$work/standin.tar" "${sources[@]}"
    "${engine[@]}" import --change 'ENV LANG=C.UTF-8' --change 'CMD ["python3"]' "$work/standin.tar" "$standin"
    rm "$work/standin.tar"
}

build() {
    local words=(--build-arg "BASE_IMAGE=$base" --build-arg "DEVICE=$device" --build-arg "TORCH_INDEX=$torch_index")
    words+=(--build-arg "VERSION=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/pyproject.toml")")
    words+=(--build-arg "REVISION=$(git -C "$root" rev-parse HEAD 2> /dev/null || true)")
    words+=(--target "$target" --tag "$tag" --network host)
    rm -rf "$work/pip"
    trap 'rm -rf "$work/pip"' EXIT # it may contain a password
    mkdir -m 700 "$work/pip"
    local mounts=()
    mapfile -t mounts < <(python3 "$root/scripts/packaging/pip_conf.py" "$work/pip")
    if [ "${engine[0]}" = docker ] && grep -qs /mnt "$work/pip/pip.conf"; then
        say "Pip's settings are left out: docker cannot mount what they name on this machine's disk."
    elif [ -e "$work/pip/pip.conf" ]; then
        words+=(--secret "id=pip-conf,src=$work/pip/pip.conf")
    fi
    if [ "${engine[0]}" = podman ]; then # whose own format has no HEALTHCHECK
        words+=(--format docker --volume "$work/pip:/mnt:ro")
        local mount
        for mount in "${mounts[@]}"; do
            words+=(--volume "$mount:ro")
        done
        [ "$base" != "$standin" ] || words+=(--pull=never)
    fi
    "${engine[@]}" build "${words[@]}" "$root"
    rm -rf "$work/pip"
}

hardened=(--read-only --cap-drop all --security-opt no-new-privileges --network none --pids-limit 512
    --tmpfs "/tmp:rw,nosuid,nodev,noexec,size=512m,mode=1777")

start() {
    local words=("${hardened[@]}")
    [ -z "$models" ] || words+=(--volume "$models:/models:ro")
    if [ "$device" = cuda ] && has_gpu; then
        [ "${engine[0]}" = docker ] && words+=(--gpus all) || words+=(--device nvidia.com/gpu=all)
    fi
    "${engine[@]}" run --detach --name "$name" "${words[@]}" "$tag"
    read -r seconds processor < <(inside wait 120) || {
        "${engine[@]}" logs "$name"
        return 1
    }
}
inside() { "${engine[@]}" exec --interactive "$name" python - "$@" < "$root/scripts/packaging/inside.py"; }
image() { "${engine[@]}" image inspect "$tag" --format "$1"; }

has_gpu() { command -v nvidia-smi > /dev/null && nvidia-smi; }
says_so() { "${engine[@]}" logs "$name" 2>&1 | grep "no GPU: the CPU translates"; }
refuses() { # without a GPU, to run on one
    local said status=0
    said=$("${engine[@]}" run --rm "${hardened[@]}" --volume "${models:-$root/tests/frozen}:/models:ro" \
        --env MT_DEVICE=cuda "$tag" 2>&1) || status=$?
    [ "$status" = 2 ] && grep -E "device 'cuda' (cannot be used|needs torch)" <<< "$said"
}

healthy() {
    if [ "${engine[0]}" = podman ]; then
        podman healthcheck run "$name"
        return
    fi
    local _
    for _ in {1..30}; do
        [ "$(docker inspect "$name" --format '{{.State.Health.Status}}')" != healthy ] || return 0
        sleep 1
    done
    return 1
}

drains() { # SIGTERM, while a request is being answered
    rm -f "$logs/long"
    inside long > "$logs/long" &
    local asked=$!
    until [ -s "$logs/long" ]; do
        kill -0 "$asked" || return 1
        sleep 0.02
    done
    "${engine[@]}" kill --signal TERM "$name"
    wait "$asked" && [ "$(tail -1 "$logs/long")" = answered ] &&
        [ "$(timeout "$goodbye" "${engine[@]}" wait "$name")" = 0 ] &&
        "${engine[@]}" logs "$name" 2>&1 | grep '"requests": 1, "event": "stopping"'
}

no_trace() { # checks that the image contains no path of this machine, nor its name, nor the hosts of its pip settings
    local words=(-e "$root" -e "$work") hosts=() host said
    host=$(cat /etc/hostname 2> /dev/null || true)
    [ "${#host}" -lt 8 ] || words+=(-e "$host")
    mapfile -t hosts < <(python3 -m pip config list | grep -oE "://[^/' ]+" | sed 's#.*[/@]##' | grep -vx pypi.org | sort -u)
    for host in "${hosts[@]}"; do words+=(-e "$host"); done
    said=$(image '{{json .Config}}' && "${engine[@]}" history --no-trunc "$tag") && [ -n "$said" ] &&
        finds_nothing grep -F "${words[@]}" -e /mnt/ -e pip.conf <<< "$said" &&
        finds_nothing "${engine[@]}" run --rm --network none --user 0 --entrypoint grep "$tag" \
            -rlF "${words[@]}" /app /etc /models /venv
}
finds_nothing() { # COMMAND ...: a grep, which can also fail
    local status=0
    "$@" || status=$?
    [ "$status" = 1 ]
}

lint() { # skipped without a message if hadolint is not installed
    local found=$root/.venv/bin/hadolint
    [ -x "$found" ] || found=$(command -v hadolint) || return 0
    check "hadolint finds nothing" "$found" "$root/Dockerfile"
}

check_image() {
    local size own
    name=mt-image-check-$$
    trap '"${engine[@]}" rm --force "$name" > /dev/null 2>&1' EXIT
    lint
    size=$(image '{{.Size}}')
    own=$((size - $("${engine[@]}" image inspect "$(image "{{index .Config.Labels \"$base_label\"}}")" --format '{{.Size}}')))
    figure "size, megabytes" "$((size / 1000000)), $((own / 1000000)) beside the base image (budget $((budget[$device] / 1000000)))"
    check "the size of the image is within the budget" test "$own" -le "${budget[$device]}"
    check "the image's user is a numeric id other than 0" grep -E '^[1-9][0-9]*(:|$)' <<< "$(image '{{.Config.User}}')"
    check "the entry point runs python without a shell" grep -F '["python","-m","service"]' <<< "$(image '{{json .Config.Entrypoint}}')"
    check "the image contains no path or host name of this machine" no_trace
    step start start
    figure "ready, seconds" "$seconds, $processor of them on a processor (at most $ready_within)"
    check "the service is ready within $ready_within s of processor time" awk -v s="$processor" -v most="$ready_within" 'BEGIN { exit s > most }'
    inside hardening > "$logs/hardening" || failed=1
    cat "$logs/hardening" >&2
    check "the service translates" test -n "$(inside translate "A man rides a bike.")"
    check "the HEALTHCHECK passes" healthy
    if ! has_gpu > "$logs/nvidia-smi.log" 2>&1; then
        check "without a GPU, the service logs that and translates" says_so
        check "without a GPU, MT_DEVICE=cuda is refused" refuses
    fi
    figure "memory, megabytes" "$(($(inside memory) / 1000000)) (anonymous, all processes)"
    check "after SIGTERM, accepted requests are answered and the exit status is 0" drains
}

median() { printf '%s\n' "$@" | sort -g | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }
speed() { # speed FILE
    local text=$1 round here there program=$root/scripts/packaging/speed.py
    local model rates=()
    figure "sentences a second" "of wall-clock time (of a processor's time)"
    model=$(find "$models/" -mindepth 2 -maxdepth 2 -name config.json -printf '%h\n' | head -1)
    [ -n "$model" ] || fail 2 "speed needs --models FOLDER, and a model in it"
    for round in 1 2 3 4; do
        here=$("$root/.venv/bin/python" "$program" "$model" "$text")
        there=$("${engine[@]}" run --rm --interactive "${hardened[@]}" --volume "$models:/models:ro" \
            --volume "$(realpath "$text"):/text:ro" --entrypoint python "$tag" - \
            "/models/$(basename "$model")" /text < "$program")
        figure "round $round" "$here here, $there in the image"
        rates+=("${there%% *} ${here%% *}")
    done
    local ratio
    ratio=$(awk -v a="$(median "${rates[@]% *}")" -v b="$(median "${rates[@]#* }")" 'BEGIN { printf "%.2f", a / b }')
    figure "speed, image / host" "$ratio (at least $as_fast)"
    check "the image is as fast as the host" awk -v r="$ratio" -v least="$as_fast" 'BEGIN { exit r < least }'
}

main() {
    while [ $# -gt 0 ]; do
        case $1 in
            -h | --help) usage && exit 0 ;;
            --install) install=yes && shift && continue ;;
            --device | --torch-index | --target | --tag | --models | --base | --work) ;;
            -*) fail 2 "$1 is not an option. $(usage)" ;;
            *) break ;;
        esac
        [ $# -gt 1 ] || fail 2 "$1 needs a value"
        local option=${1#--}
        printf -v "${option//-/_}" '%s' "$2"
        shift 2
    done
    local verb=${1:-all}
    case $verb:$device:$target in
        *:cpu:service | *:cpu:demo | *:cpu:baked) ;;
        *:cpu-torch:service | *:cpu-torch:demo | *:cpu-torch:baked) ;;
        *:cuda:service | *:cuda:demo | *:cuda:baked) ;;
        *) fail 2 "--device $device --target $target: accepted are cpu, cpu-torch or cuda, and service, demo or baked" ;;
    esac
    [ -n "$tag" ] || tag=localhost/mt-service:$([ "$target" = service ] && echo "$device" || echo "$target")
    [ -n "$models" ] || [ "$target" != service ] || models=$root/tests/frozen
    [ -z "$models" ] || models=$(realpath "$models")
    work=$(realpath -m "$work") logs=$work/logs
    mkdir -p "$logs"
    [ -O "$work" ] || fail 2 "$work belongs to another user; give another folder with --work"
    find_engine
    case $verb in
        all | build | check) ;;
        pin)
            pin
            exit
            ;;
        engine)
            shift
            exec "${engine[@]}" "$@"
            ;;
        speed)
            if [ $# != 2 ] || [ ! -r "$2" ]; then
                fail 2 "speed needs a file of sentences"
            fi
            ;;
        clean)
            [ "${engine[0]}" = docker ] || podman system prune --all --force
            rm -rf "$work"
            exit
            ;;
        *) fail 2 "$verb is not a verb. $(usage)" ;;
    esac
    say "${engine[0]}, logs in $logs"
    case $verb in all | build)
        choose_base
        step build build
        ;;
    esac
    case $verb in
        all | check) check_image ;;
        speed) speed "$2" ;;
    esac
    printf '%s\n' "${table[@]}"
    if [ $failed = 1 ]; then
        fail 1 "The image check failed."
    fi
}

main "$@"; exit # in one line: this file may change while it runs
