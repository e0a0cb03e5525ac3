# tilelab devices, groups, metrics, describe: without a GPU.
. tests/cli/tap.sh

capture "$tilelab" devices
is "$code" 0 "devices"
like "$out" '^cpu: .* threads$' "the CPU is a device"

capture "$tilelab" groups
is "$code" 0 "groups"
like "$out" '^PAPER +GH100 +9 ' "PAPER is there"
capture "$tilelab" groups SMEM
like "$out" '^wavefronts_per_load +wavefront +shared_wavefronts_load / shared_loads' "derived values have formulas"
capture "$tilelab" groups PAPR
is "$code" 2 "an unknown group: exit 2"
like "$err" "unknown metric group 'PAPR'; did you mean PAPER" "and the nearest one"
capture "$tilelab" describe dram_gbps
like "$out" '^formula +dram_bytes / time$' "a derived value is described"
capture "$tilelab" describe
is "$code" 2 "describe wants a metric"
capture "$tilelab" --help
for command in devices groups metrics describe compare figures bench-check document record; do
    like "$out" "^  $command " "--help lists $command"
done

if ! "$tilelab" -e 'os.exit(require "tilelab_core".chips() ~= nil)'; then
    capture "$tilelab" metrics
    is "$code" 2 "no CUPTI: exit 2"
    like "$err" "CUPTI" "and the reason"
    skip "no CUPTI in this build"
    finish
    exit
fi

capture "$tilelab" metrics
is "$code" 0 "metrics"
[ "$(printf '%s\n' "$out" | wc -l)" -gt 3000 ]
result "thousands of them" $?
capture "$tilelab" metrics 'dram__bytes*read'
is "$out" "dram__bytes_read  # of bytes read from DRAM" "by pattern"
capture "$tilelab" metrics --chip GB100 sm__pipe_tc_cycles
like "$out" '^sm__pipe_tc_cycles_active ' "of another chip"
capture "$tilelab" metrics dram__bytes_raed
is "$code" 2 "nothing matches: exit 2"
like "$err" "the nearest is dram__bytes_read" "and the nearest"
capture "$tilelab" metrics --chip GH10
is "$code" 2 "unknown chip: exit 2"
like "$err" "unknown chip 'GH10'; CUPTI knows .*GH100" "and those there are"

capture "$tilelab" describe dram__bytes_read.sum
is "$code" 0 "describe"
like "$out" '^unit +byte$' "unit"
like "$out" '^groups +PAPER DRAM ROOFLINE$' "groups"
like "$out" '^passes +1 by itself$' "passes"
like "$out" '^roll-ups +\.avg ' "roll-ups"
capture "$tilelab" describe achieved_occupancy
like "$out" '^metric +sm__warps_active\.avg\.pct_of_peak_sustained_active$' "by label"
capture "$tilelab" describe tc_elapsed
like "$out" '^chip +GB100$' "a metric of Blackwell"
capture "$tilelab" describe dram__bytes_raed.sum
is "$code" 2 "unknown metric: exit 2"
like "$err" "near names: dram__bytes_read, " "and near names"
[ "$(printf '%s\n' "$err" | wc -l)" -eq 1 ]
result "in one line" $?
capture "$tilelab" describe dram__bytes_read.sums
like "$err" "has no roll-up .sums; did you mean .sum" "unknown roll-up"
finish
