# The guest in which the tests meet Soft-RoCE; source it after common.sh.

# begin_guest FOLDER: fetches its kernel where that is missing and boots it once, in the background. guest_works tells.
begin_guest() {
  guest_log=$1/guest.log
  mkdir -p "$1"
  local install=()
  if ((EUID == 0)); then install=(--install); fi
  say "Booting a guest with Soft-RoCE in the background (output in $guest_log)"
  timeout --kill-after 20 420 conformance/softroce/softroce run --time-limit 300 --memory 768 "${install[@]}" -- \
    sh -c 'ls /sys/class/infiniband' > "$guest_log" 2>&1 < /dev/null &
  guest_process=$!
  # It goes with the script, whatever ends that.
  trap 'kill "$guest_process" 2> /dev/null || true' EXIT
}

# guest_works: whether it came up with its device; if not, says why.
guest_works() {
  local status=0
  wait "$guest_process" || status=$?
  trap - EXIT
  if ((status == 0)) && grep -qx rxe0 "$guest_log"; then return 0; fi
  say "LEFT OUT: the conformance suite on real Soft-RoCE, because this machine does not boot the guest for it" \
    "(status $status):"
  tail -n 15 "$guest_log" | sed 's/^/   /'
  return 1
}
