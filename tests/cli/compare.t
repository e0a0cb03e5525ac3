# tilelab compare, and how commands are found.
. tests/cli/tap.sh

table() { # file, commit, then rows
    file=$1
    printf '# commit: %s\n# device_model: NVIDIA H200\n' "$2" >"$file"
    printf 'op\texperts\ttime_us\ttime_us_lo\ttime_us_hi\n' >>"$file"
    shift 2
    for row in "$@"; do echo "$row" | tr ' ' '\t' >>"$file"; done
}
table "$tmp/base.tsv" aaa 'fwd 32 100 99 101' 'fwd 128 200 199 201' 'old 1 5 4 6'
table "$tmp/same.tsv" aaa 'fwd 128 201 200 202' 'fwd 32 100 99 101' 'old 1 5 4.9 5.1'
table "$tmp/slow.tsv" bbb 'fwd 32 110 109 111' 'fwd 128 200 199 201' 'new 1 5 4 6'

capture "$tilelab" compare "$tmp/base.tsv" "$tmp/slow.tsv"
is "$code" 1 "a regression"
like "$out" '^32 +100 +110 +1\.100 +\[1\.08[0-9], 1\.11[0-9]\] +slower$' "is in the table"
like "$(echo "$out" | sed -n 3p)" '^commit +aaa +bbb' "what differs is said first"
like "$out" '^only in base \(1\):$' "rows that are gone"
like "$out" '^  new 1$' "rows that are new"
like "$out" '^2 rows: 1 same, 1 slower \(threshold 3 %\)' "the sum"
capture "$tilelab" compare "$tmp/base.tsv" "$tmp/slow.tsv" --threshold 15%
is "$code" 0 "a higher threshold"
capture "$tilelab" compare "$tmp/slow.tsv" "$tmp/base.tsv"
is "$code" 0 "faster is no regression"
capture "$tilelab" compare "$tmp/base.tsv" "$tmp/same.tsv"
is "$code" 0 "the same"
like "$out" '^conditions agree' "and the same conditions"
like "$out" 'ambiguous' "a wide interval is ambiguous"

refused() { # pattern, name, arguments
    pattern=$1 name=$2
    shift 2
    capture "$tilelab" compare "$@"
    is "$code" 2 "$name: exit 2"
    like "$err" "$pattern" "$name: says so"
    lines "$err" 1 "$name: in one line"
}
refused 'two files are compared, and 1 were given' "one file" "$tmp/base.tsv"
refused 'absent.tsv: No such file' "no file" "$tmp/base.tsv" "$tmp/absent.tsv"
refused "expected a share such as 3% or 0.03, got '3'" "a bare threshold" "$tmp/base.tsv" "$tmp/slow.tsv" --threshold 3
refused "no column 'tflops' to compare" "no value" "$tmp/base.tsv" "$tmp/slow.tsv" --value tflops
refused "slow.tsv:5: the same op as in .*slow.tsv:4; .*--key" "too short a key" "$tmp/slow.tsv" "$tmp/slow.tsv" --key op
table "$tmp/other.tsv" aaa 'x 1 1 1 1'
refused 'no row is in both files \(key: op, experts\)' "nothing in common" "$tmp/base.tsv" "$tmp/other.tsv"
printf 'op\ttime_us\nfwd\t1' >"$tmp/cut.tsv"
refused 'cut.tsv:2: the last row is cut off' "a cut file" "$tmp/base.tsv" "$tmp/cut.tsv"
refused "did you mean --threshold" "an unknown option" "$tmp/base.tsv" "$tmp/slow.tsv" --treshold 3%

if command -v gnuplot >/dev/null; then
    capture "$tilelab" compare "$tmp/base.tsv" "$tmp/slow.tsv" --figure "$tmp/figures/deep"
    is "$code" 1 "--figure"
    [ -s "$tmp/figures/deep/compare.pdf" ] && [ -s "$tmp/figures/deep/compare.caption.txt" ]
    result "draws the ratios" $?
else
    skip "no gnuplot"
    skip "no gnuplot"
fi

# Commands.
mkdir "$tmp/compare"
out=$(cd "$tmp" && "$tilelab" compare --help | head -n 1)
is "$out" "usage: tilelab compare [options] BASE.tsv NEW.tsv" "a folder of a command's name is no script"
rmdir "$tmp/compare"
echo 'print("a script", ...)' >"$tmp/compare"
out=$(cd "$tmp" && "$tilelab" compare --help)
is "$out" "a script	--help" "a file of that name is"
capture "$tilelab" comparee
is "$code" 1 "an unknown command is a missing script"
like "$err" 'cannot open comparee: .*; tilelab --help lists the commands' "and named, with where commands are listed"
out=$(cd / && "$tilelab" -e 'x = 1' compare --help | head -n 1)
like "$out" '^usage: tilelab compare' "from any folder, after options"

finish
