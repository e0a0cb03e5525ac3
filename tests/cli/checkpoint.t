#!/bin/sh
# experiments/depth_scaling.lua --checkpoint: killed at any moment it resumes to the same losses, and a
# checkpoint that does not belong to it, or is damaged, is named.
set -u
cd "$(dirname "$0")/../.." || exit 1
tilelab=${TILELAB:-build/tilelab}
study="experiments/depth_scaling.lua --device cpu --model tiny --updates 9 --warmup 1 --top 0.4 --repetitions 1 \
    --backends rapidgemm --layers 1,2"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
count=0

ok() { # exit status of the check, name
    count=$((count + 1))
    if [ "$1" -eq 0 ]; then echo "ok $count - $2"; else echo "not ok $count - $2"; fi
}
rows() { grep -v '^#' "$1" 2> /dev/null | tail -n +2; }
columns() { rows "$1" | cut -f1-10,12-; } # all but time_s
wait_for() { # a shell condition; gives up after 30 s
    tries=0
    until eval "$1" || [ $tries -ge 600 ]; do sleep 0.05; tries=$((tries + 1)); done
}
refused() { # name, pattern, arguments
    name=$1 pattern=$2
    shift 2
    # shellcheck disable=SC2086
    "$tilelab" $study "$@" > "$dir/stdout" 2> "$dir/stderr"
    status=$?
    [ $status -eq 2 ] && grep -q -e "$pattern" "$dir/stderr" && ! grep -q traceback "$dir/stderr"
    result=$?
    [ $result -eq 0 ] || { echo "# exit $status"; sed 's/^/# /' "$dir/stderr"; }
    ok $result "$name"
}
# Runs the study in $1 with checkpoints in $2 and kills it when the condition $3 holds.
killed() {
    # shellcheck disable=SC2086
    "$tilelab" $study --out "$1" --checkpoint "$2" --checkpoint-every 2 > "$dir/log" 2>&1 &
    pid=$!
    wait_for "$3"
    kill -9 $pid 2> /dev/null
    wait $pid 2> /dev/null
}

# shellcheck disable=SC2086
"$tilelab" $study --out "$dir/whole" > "$dir/log" 2>&1
ok $? "a study without checkpoints"

# --- killed ----------------------------------------------------------------------------------
out=$dir/a store=$dir/store
there() { ls "$1" 2> /dev/null | grep -q "^$2\$"; } # a checkpoint whose name matches
killed "$out" "$store" "there '$store' 'rapidgemm-1-1-00000[4-8]'"
killed "$out" "$store" "[ \$(rows '$out/updates.tsv' | wc -l) -ge 8 ]"
killed "$out" "$store" "[ \$(rows '$out/updates.tsv' | wc -l) -ge 12 ]"
killed "$out" "$store" "there '$store' 'rapidgemm-2-1-00000[4-8]'"
last=$(ls "$store" | grep '^rapidgemm-2-1-00000[4-8]$' | tail -n 1)
cp -r "$out" "$dir/cut" && cp -r "$store" "$dir/cut_store"
for left in rapidgemm-2-1-000009.new rapidgemm-1-1-000008.old.new rapidgemm-1-1-000008; do # the second run, the first
    mkdir -p "$store/$left" && echo half > "$store/$left/value.npy"
done
# shellcheck disable=SC2086
"$tilelab" $study --out "$out" --checkpoint "$store" > "$dir/log" 2>&1
ok $? "killed four times, it comes to its end"
grep -q "1 of 2 runs are complete; the one that was cut goes on after update [468]\$" "$dir/log"
ok $? "and says where it went on"
[ "$(columns "$out/updates.tsv")" = "$(columns "$dir/whole/updates.tsv")" ]
ok $? "with the losses of a study that nobody interrupted, digit for digit"
grep -q "^# resumed: .*rapidgemm, 2 layers, repetition 1 after update ${last##*-00000}\$" "$out/updates.tsv" &&
    grep -q "^Note: went on from a checkpoint: .*after update ${last##*-00000}\. " "$dir/log"
ok $? "the provenance and the report say where a run went on"
! grep -q "^study_minutes" "$out/summary.tsv" && grep -q "^study_minutes" "$dir/whole/summary.tsv"
ok $? "and nothing how long such a study took"
[ -z "$(ls "$store")" ]
ok $? "a complete study leaves no checkpoint, and nothing of one that was cut off"

# --- what does not belong to it --------------------------------------------------------------
copied() { rm -rf "$dir/b" "$dir/b_store" && cp -r "$dir/cut" "$dir/b" && cp -r "$dir/cut_store" "$dir/b_store"; }
at=$dir/b_store/$last
copied
printf x | dd of="$at/m.npy" bs=1 seek=200000 conv=notrunc 2> "$dir/log"
refused "a changed byte is named" "m.npy: damaged: its checksum is .*; remove .*$last" \
    --out "$dir/b" --checkpoint "$dir/b_store"
copied
truncate -s -5 "$at/v.npy"
refused "a file that is cut too" "v.npy': truncated: .*; remove .*$last" \
    --out "$dir/b" --checkpoint "$dir/b_store"
copied
rm "$at/value.npy"
refused "one that is gone" "value.npy': No such file" --out "$dir/b" --checkpoint "$dir/b_store"
copied
sed -i 's/^# text_sha256: ./# text_sha256: -/' "$at/checkpoint.tsv"
refused "another text" "text_sha256 is '-.*' in it, and .* here; remove" --out "$dir/b" --checkpoint "$dir/b_store"
copied
sed -i 's/^# layout_d_model: 192/# layout_d_model: 96/' "$at/checkpoint.tsv"
refused "another layout" "layout_d_model is '96' in it, and '192' here" --out "$dir/b" --checkpoint "$dir/b_store"
copied
mv "$at" "$dir/b_store/rapidgemm-2-1-000001"
refused "another name" "000001 holds update [468]; remove .*000001" --out "$dir/b" --checkpoint "$dir/b_store"
copied
rm -rf "$dir"/b_store/*
# shellcheck disable=SC2086
"$tilelab" $study --out "$dir/b" --checkpoint "$dir/b_store" > "$dir/log" 2>&1
[ $? -eq 0 ] && grep -q "the one that was cut starts again" "$dir/log" &&
    [ "$(columns "$dir/b/updates.tsv")" = "$(columns "$dir/whole/updates.tsv")" ]
ok $? "without its checkpoint the run starts again"
copied
# shellcheck disable=SC2086
"$tilelab" $study --out "$dir/b" --checkpoint "$dir/b_store" --fresh > "$dir/log" 2>&1
[ $? -eq 0 ] && [ "$(columns "$dir/b/updates.tsv")" = "$(columns "$dir/whole/updates.tsv")" ] && [ -z "$(ls "$dir/b_store")" ]
ok $? "--fresh takes no notice of it"
refused "no folder" "--checkpoint: .*updates.tsv: Not a directory" --out "$dir/c" --checkpoint "$dir/whole/updates.tsv/empty"
refused "a folder without a name" "--checkpoint: the name of a folder" --out "$dir/c" --checkpoint ""
refused "every 0 updates" "--checkpoint-every: expected an integer from 1" --checkpoint-every 0

# A file-size limit stands for a full disk.
(
    trap '' XFSZ
    ulimit -f 1000
    # shellcheck disable=SC2086
    "$tilelab" $study --out "$dir/d" --checkpoint "$dir/d_store" --checkpoint-every 2
) > "$dir/stdout" 2> "$dir/stderr"
[ $? -eq 2 ] && grep -q "cannot write '.*d_store/rapidgemm-1-1-000002.new/.*File too large" "$dir/stderr"
ok $? "a full disk names the file"
# shellcheck disable=SC2086
"$tilelab" $study --out "$dir/d" --checkpoint "$dir/d" --checkpoint-every 4 > "$dir/log" 2>&1
[ $? -eq 0 ] && [ "$(columns "$dir/d/updates.tsv")" = "$(columns "$dir/whole/updates.tsv")" ]
ok $? "checkpoints may lie in the study's own folder"
echo "1..$count"
