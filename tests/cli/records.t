# tilelab figures and tilelab bench-check, on made-up records.
. tests/cli/tap.sh

cat >"$tmp/record.lua" <<'END'
local lab = require "tilelab"
local made_up = dofile("tests/lua/made_up.lua")
lab.recorded.folder = arg[1] .. "/records"
for _, name in ipairs(made_up.experiments()) do made_up.record(name, arg[1] .. "/run") end
END
capture "$tilelab" "$tmp/record.lua" "$tmp"
is "$code" 0 "records are written"
like "$out" "^recorded $tmp/records/cpu/roofline.tsv\$" "and named"
capture "$tilelab" "$tmp/record.lua" "$tmp"
like "$out" 'roofline.tsv, which replaces that of 20.*, kept as .*roofline.before.tsv$' "never replaced in silence"

capture "$tilelab" figures --recorded "$tmp/absent" --out "$tmp/figures"
is "$code" 2 "no records"
like "$err" "^figures: --recorded $tmp/absent: no records are there\$" "is said"
capture "$tilelab" figures --recorded "$tmp/records" --out "$tmp/figures"
is "$code" 0 "figures are drawn"
for figure in occupancy stalls bytes timeline launch_overhead ncu_agreement profiler_selftest roofline roofline_2 \
    grouped_gemm_32 grouped_gemm_128 grouped_gemm_padding_32 grouped_gemm_share \
    grouped_gemm_wgrad grouped_gemm_wgrad_time rows_per_expert rows_per_expert_padding rows_per_expert_gain \
    rows_per_expert_skew raster_time raster_l2 raster_dram gemm_ladder gemm_ladder_counters_32 \
    gemm_ladder_stalls_128 wgrad_epilogue_32 wgrad_epilogue_128 wgrad_epilogue_zeroing wgrad_epilogue_bytes; do
    like "$out" "^figure   $tmp/figures/cpu/$figure\.(pdf|gp)\$" "$figure"
done
echo old >"$tmp/records/cpu/roofline.png"
capture "$tilelab" figures --recorded "$tmp/records" --out "$tmp/figures" --update
is "$(printf '%s\n' "$out" | grep '^updated')" "updated  $tmp/records/cpu/roofline.png" "--update replaces a figure that is kept"
cmp -s "$tmp/records/cpu/roofline.png" "$tmp/figures/cpu/roofline.png"
result "with the one that was drawn" $?
TILELAB_GNUPLOT=/nonexistent/gnuplot capture "$tilelab" figures --recorded "$tmp/records" --out "$tmp/figures" --update
is "$code" 0 "without gnuplot"
like "$out" 'gnuplot not found' "a note says so"
head -c 8 "$tmp/records/cpu/roofline.png" | grep -q PNG
result "and nothing is replaced" $?

sed -i 's/^# kernel_sha256.gemm: ./# kernel_sha256.gemm: x/' "$tmp/records/cpu/roofline.tsv"
capture "$tilelab" figures --recorded "$tmp/records" --out "$tmp/figures"
is "$code" 0 "a stale record"
like "$out" '^stale +.*roofline.tsv: kernels/gemm changed since it was recorded$' "is reported, by folder"

capture "$tilelab" bench-check --recorded "$tmp/records" --chip cpu
is "$(printf '%s\n' "$out" | grep -c '^not recorded')" 0 "the made-up records have all figures that must be reached"
like "$out" '^held +1\.3 +<=2 +- +launch_overhead' "with their values"
capture "$tilelab" bench-check --recorded "$tmp/records" --chip h200
is "$code" 1 "records that are missing"
like "$out" '^not recorded +- +20' "are not recorded"
like "$out" '^0 of [0-9]+ figures hold on h200$' "and counted"

printf 'study\tfigure\tfloor\taim\treached\tnote\nroofline\tcount where kind=peak\t%s\t-\t-\t-\n' 3 >"$tmp/targets.tsv"
capture "$tilelab" bench-check --recorded "$tmp/records" --chip cpu --targets "$tmp/targets.tsv"
is "$code" 1 "below a floor"
like "$out" '^BELOW +2 +3 +- +roofline +count where kind=peak$' "is shown"
like "$out" '^stale: .*roofline.tsv: kernels/gemm changed' "a stale record is reported here too"
sed -i 's/\t3\t/\t2\t/' "$tmp/targets.tsv"
capture "$tilelab" bench-check --recorded "$tmp/records" --chip cpu --targets "$tmp/targets.tsv" --update
is "$code" 0 "on the floor"
is "$(tail -n 1 "$tmp/targets.tsv" | cut -f3-6)" "2	-	2	-" "--update writes what is reached"
sed -i 's/count where/count wher/' "$tmp/targets.tsv"
capture "$tilelab" bench-check --recorded "$tmp/records" --chip cpu --targets "$tmp/targets.tsv"
is "$code" 2 "a figure that cannot be read"
like "$err" "targets.tsv:2: figure: at character 7: 'wher' is left over" "names file and line"
lines "$err" 1 "in one line"

echo 'of <!-- recorded: cpu/roofline.tsv: count where kind=peak -->3 peaks' >"$tmp/text.md"
capture "$tilelab" document --recorded "$tmp/records" "$tmp/text.md"
is "$code" 1 "a text with another number than the record's"
like "$out" "^$tmp/text.md:1: it says 3 where cpu/roofline.tsv has 2 " "is told so"
capture "$tilelab" document --recorded "$tmp/records" "$tmp/text.md" --update
is "$code" 0 "--update mends it"
like "$out" "text.md: 1 of 1 numbers and tables agree, 1 of them written now\$" "and counts"

printf 'x' >>"$tmp/records/cpu/ncu_agreement.tsv"
capture "$tilelab" figures --recorded "$tmp/records" --out "$tmp/figures"
is "$code" 2 "a record that cannot be trusted"
like "$err" 'ncu_agreement.tsv:[0-9]+: the last row is cut off' "is named"
like "$out" 'profiler_selftest' "and the others are drawn"
capture "$tilelab" bench-check --recorded "$tmp/records" --chip cpu
is "$code" 2 "nor is it held against anything"

finish
