# tests/tally: passes output and exit code on, and counts over several runs of prove.
. tests/cli/tap.sh

cat >"$tmp/output" <<'END'
a.t .. ok
b.t .. 
ok 2 - drawn # SKIP no gnuplot
ok
c.t .. skipped: no GPU
Files=3, Tests=5,  0 wallclock secs
ok 1 # SKIP no gnuplot
Files=1, Tests=2,  0 wallclock secs
END
capture tests/tally cat "$tmp/output"
is "$code" 0 "the exit code of a command that passes"
is "$out" "$(cat "$tmp/output")

5 tests passed, 3 skipped:
  skipped 1: no GPU
  skipped 2: no gnuplot" "what it printed, then the count by reason"

capture tests/tally sh -c 'echo failed; exit 3'
is "$code$out" 3failed "the exit code of a command that fails, and no count"

capture tests/tally echo 'Files=1, Tests=4,  0 wallclock secs'
is "$(printf '%s\n' "$out" | tail -n 1)" "4 tests passed, 0 skipped" "nothing skipped"

# A program of cmocka: what it skips is no failure, and has the reason that it printed.
cat >"$tmp/program" <<'END'
#!/bin/sh
printf '1..3\nok 1 - runs\n# no GPU\nnot ok 2 # SKIP measures\nnot ok 3 - fails\n'
exit 1
END
chmod +x "$tmp/program"
capture tests/exec "$tmp/program"
is "$code" 1 "the exit code of a program"
is "$out" "1..3
ok 1 - runs
# no GPU
ok 2 - measures # SKIP no GPU
not ok 3 - fails" "skipped tests as prove wants them"
finish
