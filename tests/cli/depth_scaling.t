#!/bin/sh
# experiments/depth_scaling.lua as a user meets it: results, both hosts, resuming, bad input.
set -u
cd "$(dirname "$0")/../.." || exit 1
tilelab=${TILELAB:-build/tilelab}
study=experiments/depth_scaling.lua
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
count=0

ok() { # exit status of the check, name
    count=$((count + 1))
    if [ "$1" -eq 0 ]; then echo "ok $count - $2"; else echo "not ok $count - $2"; fi
}
skip() { # reason, name
    count=$((count + 1))
    echo "ok $count - $2 # SKIP $1"
}
short="--device cpu --model tiny --updates 4 --warmup 1 --top 0.4 --repetitions 1"

# refused NAME PATTERN ARGS...: exits with 2, prints one line that matches, no traceback.
refused() {
    name=$1 pattern=$2
    shift 2
    # shellcheck disable=SC2086
    "$tilelab" $study "$@" > "$dir/stdout" 2> "$dir/stderr"
    status=$?
    grep -q -e "$pattern" "$dir/stderr" && [ $status -eq 2 ] && ! grep -q traceback "$dir/stderr"
    result=$?
    [ $result -eq 0 ] || { echo "# exit $status"; sed 's/^/# /' "$dir/stderr"; }
    ok $result "$name"
}
rows() { grep -v '^#' "$1" | tail -n +2; }
columns() { rows "$1" | cut -f1-10,12-; } # all but time_s

# --- results ---------------------------------------------------------------------------------
out=$dir/a
# shellcheck disable=SC2086
"$tilelab" $study $short --out "$out" > "$dir/log" 2>&1
ok $? "a short study runs"
[ "$(rows "$out/updates.tsv" | wc -l)" -eq 16 ]
ok $? "updates.tsv has a row an update"
[ "$(grep -v '^#' "$out/updates.tsv" | head -n 1 | tr '\t' ' ')" = \
    "gpus experts_per_gpu model precision routing backend layers repetition update tokens time_s loss load_max_over_mean experts_empty" ]
ok $? "with the columns that were promised"
[ "$(grep -v '^#' "$out/summary.tsv" | head -n 1 | tr '\t' ' ')" = "figure backend value lo hi unit" ]
ok $? "summary.tsv too"
for key in commit dirty command script_sha256 seed host cpu gpu driver compiler device device_threads kernel_sha256.gemm; do
    grep -q "^# $key: " "$out/updates.tsv"
    ok $? "provenance says $key"
done
grep -q "^# analysis_top: 0.4" "$out/summary.tsv" && grep -q "^# analysis_warmup: 1" "$out/summary.tsv"
ok $? "summary.tsv says how it was analysed"
[ "$(rows "$out/runs.tsv" | wc -l)" -eq 4 ] && grep -q "^study_minutes	-	[0-9.]*	-	-	minutes\$" "$out/summary.tsv"
ok $? "and how long all runs took"
# shellcheck disable=SC2086
"$tilelab" $study $short --layers 2 --backends rapidgemm --out "$dir/single" > "$dir/log1" 2>&1 &&
    grep -q "^rapidgemm  2       [0-9]* " "$dir/log1" && [ ! -e "$dir/single/summary.tsv" ]
ok $? "one depth has a table, and no slope"
if command -v gnuplot > /dev/null; then
    for figure in throughput time_per_token trace; do
        [ -s "$out/$figure.pdf" ] && [ -s "$out/$figure.svg" ] && [ -s "$out/$figure.png" ] &&
            [ -s "$out/$figure.gp" ] && [ -s "$out/$figure.dat" ] && [ -s "$out/$figure.tex" ] &&
            grep -q "CPU reference, no performance claim" "$out/$figure.caption.txt"
        ok $? "$figure: PDF, SVG, PNG, script, data, table, caption"
    done
else
    skip "no gnuplot" "figures"
fi
rapid=$(rows "$out/updates.tsv" | awk -F'\t' '$6 == "rapidgemm" { print $7, $9, $12 }' | sort)
deep=$(rows "$out/updates.tsv" | awk -F'\t' '$6 == "deepgemm" { print $7, $9, $12 }' | sort)
[ -n "$rapid" ] && [ "$rapid" = "$deep" ]
ok $? "both backends give the same losses"

# --- the same script under stock Lua ---------------------------------------------------------
if [ -f build/tilelab_core.so ] && command -v lua5.4 > /dev/null; then
    # shellcheck disable=SC2086
    lua5.4 $study $short --out "$dir/b" > "$dir/log" 2>&1
    [ $? -eq 0 ] && [ "$(columns "$out/updates.tsv")" = "$(columns "$dir/b/updates.tsv")" ]
    ok $? "stock lua and build/tilelab write the same rows"
else
    skip "no lua5.4 or no module in build/" "stock lua and build/tilelab write the same rows"
fi

# --- interruption ----------------------------------------------------------------------------
wait_for_rows() { # file, number; gives up after 60 s
    tries=0
    until [ -f "$1" ] && [ "$(rows "$1" | wc -l)" -ge "$2" ] || [ $tries -gt 600 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
}
long="--device cpu --model tiny --updates 12 --warmup 1 --repetitions 1 --out $dir/c"
# shellcheck disable=SC2086
"$tilelab" $study $long > "$dir/log" 2>&1 &
pid=$!
wait_for_rows "$dir/c/updates.tsv" 15
kill -9 $pid
wait $pid 2> /dev/null
cut=$(rows "$dir/c/updates.tsv" | wc -l)
first=$(rows "$dir/c/updates.tsv" | head -n 12)
printf 'half a row' >> "$dir/c/updates.tsv"
# shellcheck disable=SC2086
"$tilelab" $study $long > "$dir/log" 2>&1
[ $? -eq 0 ] && [ "$cut" -ge 15 ] && [ "$cut" -lt 48 ] && [ "$(rows "$dir/c/updates.tsv" | wc -l)" -eq 48 ]
ok $? "a killed study resumes and ends whole"
grep -q "resuming .*: 1 of 4 runs are complete; the one that was cut starts again" "$dir/log"
ok $? "it says what was complete"
[ "$(rows "$dir/c/updates.tsv" | head -n 12)" = "$first" ]
ok $? "rows of the complete run are kept"
before=$(cksum < "$dir/c/updates.tsv")
# shellcheck disable=SC2086
"$tilelab" $study $long > "$dir/log" 2>&1
[ "$before" = "$(cksum < "$dir/c/updates.tsv")" ]
ok $? "a complete study is analysed again, not measured again"

mkdir "$dir/empty" && : > "$dir/empty/updates.tsv"
# shellcheck disable=SC2086
"$tilelab" $study $short --out "$dir/empty" > "$dir/log" 2>&1
[ $? -eq 0 ] && [ "$(rows "$dir/empty/updates.tsv" | wc -l)" -eq 16 ]
ok $? "a study killed before its header starts anew"

# A shell without job control starts background jobs with SIGINT ignored; perl puts it back.
perl -e '$SIG{INT} = "DEFAULT"; exec @ARGV' "$tilelab" $study --device cpu --model tiny \
    --updates 400 --out "$dir/d" > "$dir/log" 2>&1 &
pid=$!
wait_for_rows "$dir/d/updates.tsv" 3
refused "a second process in the same folder" "d: another process is at work there; .*--out" --out "$dir/d"
kill -INT $pid
wait $pid
[ $? -eq 130 ]
ok $? "Ctrl-C exits with 130"
[ "$(tail -c 1 "$dir/d/updates.tsv" | od -An -c | tr -d ' ')" = '\n' ]
ok $? "and leaves whole rows"

# shellcheck disable=SC2086
refused "another flag refuses to resume" "flag_seed is '2' now and was '1'.*--fresh" $short --seed 2 --out "$out"
# shellcheck disable=SC2086
(export OMP_NUM_THREADS=17; refused "another number of threads too" "device_threads is '17' now.*--fresh" $short --out "$out") > "$dir/log"
grep -q '^ok' "$dir/log"
ok $? "another number of threads refuses to resume"
# shellcheck disable=SC2086
"$tilelab" $study $short --seed 2 --out "$out" --fresh > "$dir/log" 2>&1
[ $? -eq 0 ] && grep -q '^# seed: 2' "$out/updates.tsv" && grep -q '^# seed: 1' "$out/updates.1.tsv"
ok $? "--fresh measures anew and sets the earlier rows aside"

# --- bad input -------------------------------------------------------------------------------
refused "unknown option" "unknown option --update; did you mean --updates?" --update 4
refused "unknown backend" "no backend 'rapidgem'" --backends rapidgem,deepgemm
refused "unknown model" "option --model: .*'huge'" --model huge
refused "unknown figure preset" "option --preset: .*'a4'" --preset a4
refused "unknown routing" "option --routing: .*'random'" --routing random
refused "unknown device" "unknown device 'gpu'" --device gpu
refused "wrong type" "option --updates: expected an integer.*'many'" --updates many
refused "updates <= warmup" "--updates 5: .*--warmup" --updates 5 --warmup 5
refused "a top fraction that keeps nothing" "--top 0.001: keeps none" --top 0.001
refused "layers below 1" "--layers 0,1" --layers 0,1
refused "more repetitions than anybody means" "--repetitions 1000000000000: give" --repetitions 1000000000000
refused "an output folder without a name" "--out: the name of a folder" --out ""
refused "bf16 on the CPU" "--precision bf16: the CPU trains in fp32" --device cpu --precision bf16
refused "a side study of another routing" "--record-as multinomial: the study's routing is model; give --routing multinomial" \
    --device cpu --record-as multinomial
refused "of no greater depth" "--record-as depth3: the study's greatest depth is 2; give --layers 3" \
    --device cpu --record-as depth3
refused "a record of other routing" "--record: the record is of a study with --routing model, not zipf; leave" \
    --device cpu --record --routing zipf
refused "of another fraction" "--record: the record is of a study with --top 0.1, not 0.2; leave" --device cpu --record --top 0.2
refused "of another warm-up" "--record: the record is of a study with --warmup 20, not 5; leave" --device cpu --record --warmup 5
refused "a model that does not fit" "--layers 2000: rapidgemm of 30b-a3b needs .* GB: parameters .* give fewer --layers" \
    --device cpu --model 30b-a3b --layers 1,2000
refused "a micro-batch whose size overflows" "--micro-batch: expected an integer from 1 to 1048576" \
    --micro-batch 9223372036854775807
refused "more layers than any model has" "--layers 1000000: give depths of 10000 or fewer" --device cpu --layers 1000000
refused "text missing" "--text: .*absent.txt.*No such file" --text "$dir/absent.txt" --out "$dir/e"
: > "$dir/empty.txt"
refused "text empty" "--text: .*empty.txt holds 0 tokens" --text "$dir/empty.txt" --out "$dir/e"
refused "text unreadable" "--text: .*Is a directory" --text "$dir" --out "$dir/e"
refused "output folder under a file" "empty.txt: Not a directory" --out "$dir/empty.txt/x"
# shellcheck disable=SC2086
refused "a loss that is no number" "the loss is -\{0,1\}nan at update [0-9]*; .*--learning-rate" \
    $short --learning-rate 1e30 --out "$dir/f"
rows "$dir/f/updates.tsv" | grep -q rapidgemm
ok $? "keeps the rows before it"

# A file-size limit stands for a full disk.
(
    trap '' XFSZ
    ulimit -f 4
    # shellcheck disable=SC2086
    "$tilelab" $study $short --out "$dir/g"
) > "$dir/stdout" 2> "$dir/stderr"
[ $? -eq 2 ] && grep -q "g/updates.tsv.*File too large" "$dir/stderr"
ok $? "a full disk names the file"

damaged() { # name, pattern, sed script applied to a good updates.tsv
    mkdir -p "$dir/h"
    sed "$3" "$dir/c/updates.tsv" > "$dir/h/updates.tsv"
    # shellcheck disable=SC2086
    refused "$1" "$2" $long --out "$dir/h"
}
header=$(grep -n '^gpus' "$dir/c/updates.tsv" | cut -d: -f1)
damaged "a missing column names file and line" "updates.tsv:$header: column 'loss' is missing" 's/\tloss\t/\tlos\t/'
damaged "a wrong column count names file and line" "updates.tsv:$((header + 2)): 13 columns" \
    "$((header + 2))s/\t[^\t]*$//"
damaged "NaN names file and line" "updates.tsv:$((header + 3)): column 'time_s' holds 'nan'" \
    "$((header + 3))s/\t[^\t]*\(\t[^\t]*\t[^\t]*\t[^\t]*\)$/\tnan\1/"

# --- figures without gnuplot -----------------------------------------------------------------
# shellcheck disable=SC2086
TILELAB_GNUPLOT=/nonexistent/gnuplot "$tilelab" $study $short --out "$dir/i" > "$dir/log" 2>&1
[ $? -eq 0 ] && grep -qi "gnuplot.*not found" "$dir/log" && [ -s "$dir/i/trace.gp" ] && [ -s "$dir/i/trace.dat" ]
ok $? "without gnuplot: scripts and data are written, a note says so, exit 0"

# --- published figures -----------------------------------------------------------------------
"$tilelab" $study --published > "$dir/log" 2>&1
[ $? -eq 0 ] && [ "$(grep -c ' ok$' "$dir/log")" -eq 9 ]
ok $? "--published: nine figures agree"
sed 's/345.69k/349.15k/' experiments/published_depth_scaling.tsv > "$dir/changed.tsv"
"$tilelab" $study --published="$dir/changed.tsv" > "$dir/log" 2>&1
[ $? -eq 1 ] && grep -q OUTSIDE "$dir/log"
ok $? "one throughput changed by 1 %: OUTSIDE, exit 1"
refused "published file missing" "absent.tsv" "--published=$dir/absent.tsv"
echo "1..$count"
