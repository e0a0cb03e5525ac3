# tests/exec: what a program of cmocka's printed, as prove understands it.
. tests/cli/tap.sh

program() { # text, exit code
    printf '#!/bin/sh\n[ "$CMOCKA_MESSAGE_OUTPUT" = TAP ] || exit 9\ncat <<"END"\n%s\nEND\nexit %s\n' "$1" "$2" >"$tmp/program"
    chmod +x "$tmp/program"
    capture tests/exec "$tmp/program"
    out=$(printf '%s\n' "$out" | sed '/^$/d')
}

program '1..3
ok 1 - adds
# no GPU here
not ok 2 # SKIP launches
not ok 3 # SKIP copies' 0
is "$code" 0 "skipped tests are no failure"
is "$out" "1..3
ok 1 - adds
# no GPU here
ok 2 - launches # SKIP no GPU here
ok 3 - copies # SKIP no reason given" "each with its own reason"

program '1..2
# 1 is not 2
not ok 1 - adds
ok 2 - copies' 1
is "$code" 1 "a failed test fails"
is "$out" "1..2
# 1 is not 2
not ok 1 - adds
ok 2 - copies" "and is passed on as it is"

program '1..2
ok 1 - adds' 139
is "$code" 139 "a crash keeps its exit code"
finish
