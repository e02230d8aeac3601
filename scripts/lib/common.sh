# Shared by the scripts; source it. Puts the caller into the repository's root.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"

say() { printf '== %s\n' "$*"; }

fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# The C++ files of the repository, tracked or new, under the given paths.
cpp_files() {
  git ls-files --cached --others --exclude-standard -- "$@" | grep -E '\.(cpp|hpp)$' | while IFS= read -r file; do
    if [[ -e $file ]]; then printf '%s\n' "$file"; fi
  done
}
