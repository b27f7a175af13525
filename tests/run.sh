#!/usr/bin/env bash
# The whole test command: style, unit tests on the host, then the programs on Synthesis against the host's Linux.
#
#     tests/run.sh [--quick] [options of synth-tests]
#     tests/run.sh SUITE [options of synth-tests]        one suite alone
#
# `./synth test` builds the tool and the kernel and then starts this. --quick leaves out the virtual machine.
# The last line is `N passed, N failed`; the status is 0 only when nothing failed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
log=$(mktemp)
beat= # who tells what a long check is at
trap 'rm -f "$log"; [ -z "$beat" ] || kill "$beat"' EXIT

quick=
if [ "${1:-}" = --quick ]; then
    quick=yes
    shift
fi

passed=0
failed=0
skipped=0
failures=

say() { printf '[%4ds] %s\n' "$SECONDS" "$*"; }

# Tells every half minute what a long check is at, until it is ended.
beat() {
    trap 'kill $!; exit' TERM
    while :; do
        sleep 30 &
        wait $!
        say "  ... $(tail -n 1 "$log" | cut -c 1-100)"
    done
}

# quietly COMMAND...: its output goes to the file $log.
quietly() {
    local status
    beat &
    beat=$!
    "$@" >"$log" 2>&1
    status=$?
    kill "$beat"
    wait "$beat" 2>/dev/null
    beat=
    return "$status"
}

# step NAME COMMAND...: one of the checks before the machine starts; its output is shown only when it fails.
step() {
    local name=$1
    shift
    say "$name"
    if quietly "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        failures="$failures $name"
        echo "FAIL $name: $*"
        { grep -E -A 20 '^---- .* stdout ----$|^error' "$log" || cat "$log"; } | tail -n 80 | sed 's/^/     /'
    fi
}

# The programs that the tests run, by the Debian package that has them.
packages() {
    local wanted="busybox-static:busybox bc:bc gawk:gawk make:make dash:dash bash:bash tar:tar gzip:gzip diffutils:cmp
        findutils:find grep:grep sed:sed coreutils:sort util-linux:setsid gcc:gcc qemu-system-x86:qemu-system-x86_64
        strace:strace gdb:gdb luajit:luajit lua5.4:lua5.4 sqlite3:sqlite3 perl:perl python3:python3 xz-utils:xz
        tmux:tmux gnupg:gpg gpg-agent:gpg-agent redis-server:redis-server redis-tools:redis-cli screen:screen nginx-light:nginx
        memcached:memcached iperf3:iperf3 curl:curl wget:wget"
    local entry missing=
    for entry in $wanted; do
        command -v "${entry#*:}" >/dev/null 2>&1 || missing="$missing ${entry%%:*}"
    done
    # gcc alone cannot link a static program: the C library's archive is in a package of its own.
    if ! [ -e "$(gcc -print-file-name=libc.a 2>/dev/null)" ]; then missing="$missing libc6-dev"; fi
    [ -z "$missing" ] && return 0
    local install="apt-get install -y --no-install-recommends$missing" root
    if [ "$(id -u)" = 0 ]; then
        root=
    elif sudo -n true 2>/dev/null; then
        root="sudo -n"
    else
        echo "these packages are missing, and their tests are skipped or fail: sudo $install"
        return 0
    fi
    say "installing$missing"
    # shellcheck disable=SC2086 # lists of words
    if ! quietly $root apt-get update || ! quietly $root env DEBIAN_FRONTEND=noninteractive $install; then
        tail -n 5 "$log" | sed 's/^/     /'
        echo "could not install them, and their tests are skipped or fail: $install"
    fi
}

say "packages"
packages

case ${1:-} in
[a-z]*)
    cargo build --quiet --release -p synth-tests || exit
    rm -f "$log"
    exec "${CARGO_TARGET_DIR:-target}/release/synth-tests" "$@"
    ;;
esac

step formatted cargo fmt --all --check
step clippy cargo clippy --workspace --all-targets -- -D warnings
# What only the kernel image has; without std nothing can unwind.
step clippy-image env RUSTFLAGS=-Cpanic=abort cargo clippy -p synthesis-pc --features image \
    --target x86_64-unknown-linux-gnu --target-dir "${CARGO_TARGET_DIR:-target}/clippy-image" -- -D warnings

# The images that only measure or fail on purpose.
step clippy-images env RUSTFLAGS=-Cpanic=abort cargo clippy -p synthesis-pc --features image,bounds,failing,stages,monitor \
    --target x86_64-unknown-linux-gnu --target-dir "${CARGO_TARGET_DIR:-target}/clippy-image" -- -D warnings

# Crates whose tests are on the host. The kernel binary has no std and no tests.
step unit-tests cargo test --workspace --exclude synthesis-pc --no-fail-fast

# The queues, in all orders that the processor's memory allows.
step models env RUSTFLAGS="--cfg loom" cargo test -p queue --release --test models \
    --target-dir "${CARGO_TARGET_DIR:-target}/loom"

step harness cargo build --release -p synth-tests

if [ -n "$quick" ]; then
    say "the virtual machine is left out (--quick)"
else
    say "programs on the host and on Synthesis"
    # The harness prints its progress as it goes; its last line is counted here.
    timeout 1800 "${CARGO_TARGET_DIR:-target}/release/synth-tests" all "$@" 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    summary=$(grep -E '^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$' "$log" | tail -n 1)
    if [ -n "$summary" ]; then
        passed=$((passed + ${summary%% *}))
        rest=${summary#*, }
        failed=$((failed + ${rest%% *}))
        case $rest in *skipped) rest=${rest#*, } && skipped=$((skipped + ${rest%% *})) ;; esac
    else
        echo "FAIL the programs did not come to their end (status $status; 124 is the time limit of 30 minutes)"
        failed=$((failed + 1))
        failures="$failures programs"
    fi
    # A status without a counted failure is a failure too.
    if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then failed=1; fi
fi

say "done"
[ -z "$failures" ] || echo "failed before or around the programs:$failures"
if [ "$skipped" -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ "$failed" -eq 0 ]
