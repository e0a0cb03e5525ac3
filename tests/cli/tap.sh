# TAP from sh: `. tests/cli/tap.sh`, then checks, then `finish`. Tests start in the repository root;
# $tilelab is the host under test and $tmp a folder that goes at the end.

root=$(pwd)
build=$root/${TILELAB_BUILD:-build}
tilelab=$build/tilelab
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
count=0
failed=0

# capture COMMAND...: its exit code into $code, its outputs into $out and $err.
capture() {
    "$@" >"$tmp/stdout" 2>"$tmp/stderr"
    code=$?
    out=$(cat "$tmp/stdout")
    err=$(cat "$tmp/stderr")
}

result() { # name, then the test's status
    count=$((count + 1))
    if [ "$2" -eq 0 ]; then
        echo "ok $count - $1"
    else
        failed=$((failed + 1))
        echo "not ok $count - $1"
        printf '%s\n' "code $code" "out: $out" "err: $err" | sed 's/^/#   /'
    fi
}

is() { # got, want, name
    [ "$1" = "$2" ]
    result "$3" $?
    [ "$1" = "$2" ] || printf '%s\n' "got  $1" "want $2" | sed 's/^/#   /'
}

like() { # text, extended regular expression that one of its lines matches, name
    printf '%s\n' "$1" | grep -Eq -- "$2"
    result "$3" $?
}

lines() { # text, how many lines it should have, name
    is "$(printf '%s\n' "$1" | wc -l | tr -d ' ')" "$2" "$3"
}

skip() { # reason
    count=$((count + 1))
    echo "ok $count # SKIP $1"
}

finish() {
    echo "1..$count"
    [ "$failed" -eq 0 ]
}
