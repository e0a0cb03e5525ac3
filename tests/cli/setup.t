# .ci/setup: silent where everything is there; installs as root or with sudo; else one line to run.
# Every command it looks for is a stub in $bin, the only folder of its PATH.
. tests/cli/tap.sh

bin=$tmp/bin
mkdir "$bin"
for command in sh grep env; do ln -s "$(command -v $command)" "$bin/$command"; done
stub() { # name, line
    printf '#!/bin/sh\n%s\n' "$2" >"$bin/$1"
    chmod +x "$bin/$1"
}
for command in make gcc git prove lua5.4 gnuplot pdffonts fc-match; do stub $command 'exit 0'; done
stub fc-list 'echo "Liberation Sans:style=Regular"'
stub id 'echo 1000'
record='echo "${0##*/} $*" >>'"$tmp/calls"
stub apt-get "$record"
setup() {
    rm -f "$tmp/calls"
    capture env PATH="$bin" "$root/.ci/setup"
    calls=$(cat "$tmp/calls" 2>/dev/null)
}
line='    apt-get update && apt-get install -y --no-install-recommends gnuplot-nox'

stub sudo "$record"
setup
is "$code$out$err$calls" 0 "everything there: says nothing, calls neither apt nor sudo"

rm "$bin/gnuplot" "$bin/sudo"
setup
is "$code$calls" 1 "no root, no sudo: stops, calls nothing"
is "$(printf '%s\n' "$err" | tail -n 1)" "$line" "and prints the line to run"

stub sudo "$record; exit 1"
setup
is "$code" 1 "sudo refuses: stops"
like "$calls" '^sudo .*apt-get install .* gnuplot-nox$' "after asking it for what is missing"
is "$(printf '%s\n' "$err" | tail -n 1)" "$line" "and prints the line to run"

stub sudo "$record"
setup
is "$code$err" 0 "with sudo: installs"
is "$out" "installing: gnuplot-nox" "and says what"

stub id 'echo 0'
setup
is "$code$err" 0 "as root: installs"
like "$calls" '^apt-get install .* gnuplot-nox$' "without sudo"

stub apt-get "$record; exit 100"
setup
is "$code" 1 "apt fails: stops"
is "$(printf '%s\n' "$err" | tail -n 1)" "$line" "and prints the line to run"

rm "$bin/apt-get"
setup
is "$code" 1 "no apt: stops"
like "$err" 'packages of Debian' "and names the packages"
finish
