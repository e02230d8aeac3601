# The Debian packages weft is built from; source it after common.sh.

build_packages=(g++ cmake ninja-build pkg-config libgtest-dev libgmock-dev libbenchmark-dev
  libboost-program-options-dev nlohmann-json3-dev libjs-chart.js libfmt-dev libspdlog-dev
  libibverbs-dev libfabric-dev libucx-dev jq dpkg-dev file iproute2)
# For the guest in which the tests meet Soft-RoCE.
softroce_packages=(python3 qemu-system-x86 busybox-static kmod ibverbs-providers)
clang_packages=(clang libclang-rt-dev)
check_packages=("${clang_packages[@]}" clang-tidy clang-format)

# install_packages NAME…: installs those that are missing, and nothing if none is.
install_packages() {
  if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
    say "This is not a Debian system: taking the needed packages as given. On Debian they are called: $*"
    return
  fi

  local name missing=()
  for name in "$@"; do
    if [[ $(dpkg-query -W -f='${db:Status-Status}' "$name" 2> /dev/null) != installed ]]; then missing+=("$name"); fi
  done
  if ((${#missing[@]} == 0)); then
    say "All needed Debian packages are installed"
    return
  fi

  local as_root=()
  if ((EUID != 0)); then
    command -v sudo > /dev/null \
      || fail "missing Debian packages: ${missing[*]}; install them as root, then run this again (there is no sudo here)"
    as_root=(sudo)
  fi
  say "Installing the missing Debian packages: ${missing[*]}"
  local log
  log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update -q \
    && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -q -y --no-install-recommends "${missing[@]}"; } > "$log" 2>&1; then
    tail -n 20 "$log" >&2
    fail "apt-get could not install: ${missing[*]} (its whole output is in $log)"
  fi
  rm -f "$log"
}
