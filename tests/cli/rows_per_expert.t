# experiments/rows_per_expert.lua on the CPU.
. tests/cli/tap.sh

run() { capture "$tilelab" experiments/rows_per_expert.lua --device cpu --rounds 3 --out "$tmp/out" "$@"; }
rows() { grep -v '^#' "$tmp/out/rows_per_expert.tsv" | tail -n +2; }

run --rows 512 --most-experts 8 --rows-per-expert 16,128 --exponents 0,1.2 --skewed-rows 64
is "$code" 0 "rows an expert, and skew"
is "$(rows | cut -f2-7 | tr '\t\n' ' ,')" \
    "16 8 128 multinomial - cpu_ragged,16 8 128 multinomial - cpu_padded,128 4 512 multinomial - cpu_ragged,128 4 512 multinomial - cpu_padded,64 8 512 zipf_0 0 cpu_ragged,64 8 512 zipf_0 0 cpu_padded,64 8 512 zipf_1.2 1.2 cpu_ragged,64 8 512 zipf_1.2 1.2 cpu_padded," \
    "as many experts as allowed, then as the rows fill"
is "$(rows | awk -F'\t' '$7 == "cpu_padded" && $11 > 0 && $12 > 0 && $13 > $8 && $18 < $17 && $20 % 128 == 0 && $20 > $4 && $25 > $22' | wc -l | tr -d ' ')" 4 \
    "padding has its times, counted in the whole"
is "$(rows | awk -F'\t' '$7 == "cpu_ragged" && $11 == "-" && $13 == $8 && $20 == $4 && $22 == 1' | wc -l | tr -d ' ')" 4 \
    "which the ragged layout does not need"
like "$out" "^ +8  multinomial +16  cpu_padded " "a table"
for figure in rows_per_expert rows_per_expert_padding rows_per_expert_gain rows_per_expert_skew; do
    like "$out" "^figure   $tmp/out/$figure\.(pdf|gp)\$" "$figure"
done
like "$(cat "$tmp/out/rows_per_expert_skew.caption.txt")" "512 rows of fwd_w13 over 8 experts, sizes from even" \
    "with its conditions"
run --rows-per-expert 32 --exponents 0 --op wgrad_w13
is "$code" 2 "a product that is none of these"
run --device cudda
is "$code" 2 "an unknown device"
like "$err" "^rows_per_expert: --device: unknown device 'cudda'" "is named"

finish
