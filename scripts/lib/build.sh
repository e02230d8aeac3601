# Configuring and building a preset; source it after common.sh.

# build_preset PRESET [TARGET…]: silent when all goes well, the end of the output when it does not.
build_preset() {
  local preset=$1
  shift
  local folder=build/$preset log=build/$preset.log targets=()
  if (($# > 0)); then targets=(--target "$@"); fi
  mkdir -p build

  say "Building preset $preset in $folder (output in $log)"
  if ! cmake --preset "$preset" > "$log" 2>&1; then
    tail -n 60 "$log" >&2
    fail "cmake could not configure preset $preset"
  fi
  if ! cmake --build --preset "$preset" --parallel "$(nproc)" "${targets[@]}" >> "$log" 2>&1; then
    tail -n 100 "$log" >&2
    fail "preset $preset does not build"
  fi
}
