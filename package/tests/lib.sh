# Shared by the tests of this folder; source it.
set -euo pipefail

fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# The folder of the libraries in an installed tree: lib, lib64 or lib/TRIPLET.
library_folder() {
  local library
  library=$(find "$1" -name libweft.so -print -quit)
  [[ -n $library ]] || fail "there is no libweft.so under $1"
  dirname "$library"
}

# expect TEXT PATTERN WHAT: the text holds the pattern.
expect() { grep -Eq -- "$2" <<< "$1" || fail "$3; expected /$2/ in: $1"; }
