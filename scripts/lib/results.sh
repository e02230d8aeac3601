# Counting test cases; source it after common.sh. Sets passed and failed.
passed=0
failed=0
left_out=()  # tests that cannot run on this machine; whoever adds one has said why

# count_results PRESET full|quick|long LOG: adds up the cases of every test program that had to run. LOG is
# the output of ctest, which says what a program that left no results had done before it ended.
count_results() {
  local folder=build/$1 mode=$2 log=$3 name when program
  while read -r name when program; do
    if [[ $when != always && $when != "$mode" && ! ($when == full && $mode == long) ]]; then continue; fi
    if [[ " ${left_out[*]} " == *" $name "* ]]; then continue; fi
    if [[ $program == script ]]; then
      count_script "$name" "$log"
    else
      count_program "$name" "$program" "$folder/test-results/$name.json" "$log"
    fi
  done < "$folder/tests.list"
}

# A case counts as passed only if it ran to its end without a failure: skipped and disabled ones count
# as failed, because nothing may be left out quietly.
count_program() {
  local name=$1 program=$2 results=$3 log=$4 good=0 bad=0 listed
  if [[ -s $results ]] && jq -e . "$results" > /dev/null 2>&1; then
    read -r good bad < <(jq -r '
      [.testsuites[].testsuite[]] as $cases
      | [$cases[] | select(.status == "RUN" and .result == "COMPLETED" and (has("failures") | not))] as $good
      | "\($good | length) \(($cases | length) - ($good | length))"' "$results")
    jq -r '.testsuites[] | .name as $suite | .testsuite[]
      | select(has("failures") or .status != "RUN" or .result != "COMPLETED")
      | "\($suite).\(.name)\(if .result == "SKIPPED" then " (skipped)" elif .status != "RUN" then " (disabled)" else "" end)"' \
      "$results" | sed "s/^/   failed: $name: /"
    if ((good + bad == 0)); then
      say "$name: holds no test case, counted as a failure"
      bad=1
    elif ((bad == 0)) && ! program_succeeded "$name" "$log"; then
      say "$name: every case passed, but the program ended with an error; counted as a failure"
      bad=1
    fi
  else
    good=$(program_output "$name" "$log" | grep -c '\[       OK \]' || true)
    listed=$({ "$program" --gtest_list_tests 2> /dev/null || true; } | grep -c '^  ' || true)
    bad=$((listed > good ? listed - good : 1))
    say "$name: ended before it wrote its results; $good cases had passed, $bad count as failed"
  fi
  if ((bad > 0)); then
    say "The end of what $name said:"
    program_output "$name" "$log" | grep -Ev '\[ +(RUN|OK) +\]|^[0-9]+: *$' | tail -n 100 || true
  fi
  say "$name: $good passed, $bad failed"
  passed=$((passed + good))
  failed=$((failed + bad))
}

# A script is one case.
count_script() {
  local name=$1 log=$2
  if program_succeeded "$name" "$log"; then
    say "$name: passed"
    passed=$((passed + 1))
    return
  fi
  say "The end of what $name said:"
  program_output "$name" "$log" | tail -n 100 || true
  say "$name: failed"
  failed=$((failed + 1))
}

# What the test NAME printed: `ctest -V` puts the number of the test before each line.
program_output() {
  awk -v name="$1" '
    /^ *Start +[0-9]+: / { number = ($3 == name) ? $2 : "" }
    number != "" && $1 == number { print }' "$2"
}

# ctest's summary line: `1/3 Test #1: NAME ....   Passed    0.01 sec`.
program_succeeded() { grep -Eq "Test +#[0-9]+: $1 \.+ +Passed " "$2"; }
