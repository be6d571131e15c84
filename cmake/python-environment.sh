#!/usr/bin/env bash
# The Python environment of the tests and comparisons that need PyTorch's Python side, made once and kept in the cache folder.
#   python-environment.sh make LIBTORCH               make it where it is missing; prints its interpreter
#   python-environment.sh run LIBTORCH SCRIPT [ARG..]  run a script in it; exit 77 (ctest: skipped) where it was never made
#   ... make-lm-eval, run-lm-eval                      the same of one that has lm-eval, too (84 MB to fetch, 250 MB more)
# LIBTORCH is the unpacked torch wheel (see LibTorch.cmake); the environment reads torch from there. Where CUDA 13, cuDNN and
# NCCL are installed it takes 655 MB, and 340 MB of NVIDIA libraries beside LibTorch; elsewhere more of those.
# WINDTUNNEL_CACHE says where it is kept, as for ./windtunnel.
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
packages=$here/python-packages.txt
sources=$here/python-sources.txt
harness_packages=$here/lm-eval-packages.txt
nvidia=$here/nvidia-wheels.txt
cache=${WINDTUNNEL_CACHE:-${XDG_CACHE_HOME:-${HOME:?is not set; set it, or WINDTUNNEL_CACHE}/.cache}/windtunnel}
pip_options=(--no-deps --no-cache-dir --disable-pip-version-check --no-input --require-hashes --timeout 30 --retries 2)

# skip REASON: there can be no environment here; what needs it is skipped.
skip() { printf 'SKIPPED: no Python environment: %s\n' "$*" >&2; exit 77; }

[[ $# -ge 2 && $1 =~ ^(make|run)(-lm-eval)?$ ]] || { sed -n 2,8p "$0" >&2; exit 2; }
verb=${1%-lm-eval} with_lm_eval=${1#"${1%-lm-eval}"}
libtorch=$(readlink -f "$2") || skip "$2: no such folder; ./windtunnel setup fetches LibTorch"
shift 2

# _C.cpython-311-x86_64-linux-gnu.so: the wheel says which Python it is for.
extension=$(compgen -G "$libtorch/torch/_C.cpython-*.so") || skip "$libtorch/torch holds no Python extension: it is not an unpacked torch wheel"
[[ $extension =~ _C\.cpython-3([0-9]+)- ]] && version=3.${BASH_REMATCH[1]}
key=$( { cat "$packages" "$sources" "$nvidia"; echo "$libtorch" "$version"; } | sha256sum | cut -c1-12)
environment=$cache/python-$key
harness=$cache/lm-eval-$( { cat "$harness_packages"; echo "$key"; } | sha256sum | cut -c1-12)

# Libraries that `import torch` wants and the loader does not find.
missing_libraries() { ldd "$libtorch/torch/lib/libtorch_python.so" 2>/dev/null | sed -n 's/^\s*\(\S*\) => not found$/\1/p' | sort -u; }

# Unpacks them into the wheel's own nvidia/ folder, where its run path looks. Twice, because they need one another.
fetch_libraries() {
  local library line wheel round
  for round in 1 2; do
    : >"$work/wanted.txt"
    for library in $(missing_libraries); do
      line=$(grep -wF -- "$library" "$nvidia") || skip "$library is not installed and no wheel of $nvidia has it"
      grep -qxF -- "$line" "$work/wanted.txt" || printf '%s\n' "$line" >>"$work/wanted.txt"
    done
    [[ -s $work/wanted.txt ]] || return 0
    printf 'fetching %s\n' "$(sed 's/==.*//' "$work/wanted.txt" | tr '\n' ' ')" >&2
    "$python" -m pip download "${pip_options[@]}" --only-binary=:all: -q -d "$work/wheels" -r "$work/wanted.txt" >&2 || skip "NVIDIA's libraries could not be fetched (see above)"
    for wheel in "$work"/wheels/*.whl; do
      "$python" -m zipfile -e "$wheel" "$libtorch" || skip "$wheel could not be unpacked into $libtorch"
      rm -f "$wheel"
    done
  done
}

# install FOLDER PIP_ARG..: into a new environment.
install() {
  "$python" -m pip --python "$1/bin/python" install "${pip_options[@]}" -q "${@:2}" >&2 ||
    { rm -rf "$1"; skip "Python packages could not be fetched or built (see above)"; }
}

# Calls that make environments wait for one another.
take_turn() {
  mkdir -p "$cache" || skip "$cache cannot be created"
  exec 8>"$cache/.python.lock"
  flock -w 2 8 || { echo "waiting for another call that makes the Python environment in $cache" >&2; flock 8; }
}

# begin FOLDER PACKAGES: an empty environment.
begin() {
  python=$(command -v "python$version") || skip "torch's wheel is for Python $version, which is not installed"
  rm -rf "$1"
  "$python" -m venv --without-pip "$1" || skip "python$version -m venv failed (see above)"
  printf 'installing the packages of %s into %s\n' "$2" "${1%.new}" >&2
}

make_environment() {
  [[ -e $environment/bin/python ]] && return
  take_turn
  [[ -e $environment/bin/python ]] && return
  python=$(command -v "python$version") || skip "torch's wheel is for Python $version, which is not installed"
  work=$(mktemp -d "$cache/.making.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  fetch_libraries
  begin "$environment.new" "$packages"
  install "$environment.new" --only-binary=:all: -r "$packages"
  install "$environment.new" --no-binary=:all: --no-build-isolation -r "$sources"
  echo "$libtorch" >"$environment.new/lib/python$version/site-packages/torch.pth"
  mv -T "$environment.new" "$environment"
}

make_harness() {
  [[ -e $harness/bin/python ]] && return
  take_turn
  [[ -e $harness/bin/python ]] && return
  begin "$harness.new" "$harness_packages"
  install "$harness.new" --only-binary=:all: -r "$harness_packages"
  printf '%s\n' "$environment/lib/python$version/site-packages" "$libtorch" >"$harness.new/lib/python$version/site-packages/first.pth"
  mv -T "$harness.new" "$harness"
}

if [[ $verb == make ]]; then
  make_environment
  [[ -z $with_lm_eval ]] || make_harness
fi
[[ -z $with_lm_eval ]] || environment=$harness
if [[ $verb == make ]]; then
  echo "$environment/bin/python"
else
  [[ -e $environment/bin/python ]] || skip "$environment is missing; ./windtunnel test makes it"
  # Bytecode lies there too: not in the source tree, nor beside LibTorch.
  PYTHONPYCACHEPREFIX=$environment/bytecode exec "$environment/bin/python" "$@"
fi
