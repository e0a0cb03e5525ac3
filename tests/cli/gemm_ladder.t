# experiments/gemm_ladder.lua, raster.lua and wgrad_epilogue.lua with kernels of the CPU in the place of the GPU's: which rows and
# figures come out, and that wrong results stop a record. What they say on the CPU, gpu_experiments.t tests.
. tests/cli/tap.sh

run() {
    script=$1
    shift
    capture "$tilelab" tests/lua/fake_gpu.lua "experiments/$script.lua" --rows 40 --rounds 6 --out "$tmp/$script" "$@"
}
rows() { grep -v '^#' "$tmp/$1/$1.tsv" | tail -n +2; }

run gemm_ladder --experts 1,3
is "$code" 0 "the ladder"
is "$(rows gemm_ladder | awk -F'\t' '$2 == 3 { print $5, $7, $8, $9, $10, $11, $12, $13 }' | tr '\n' ,)" \
    "0 cublaslt_dense - - - - - -,1 smxx_plain - - - - - -,2 sm90_ragged 2 1 1 128 1 1,3 sm90_ragged 6 1 1 128 1 1,4 sm90_ragged 6 2 1 128 1 1,5 sm90_ragged 6 2 2 128 1 1,6 sm90_ragged 6 2 2 8 1 1,7 sm90_ragged 6 2 2 8 8 1,8 sm90_ragged 6 2 2 8 8 2," \
    "a technique more from step to step"
is "$(rows gemm_ladder | awk -F'\t' '$5 > 1 && $20 > 0 && (($21 > 0) == ($5 > 2))' | wc -l | tr -d ' ')" 14 \
    "each with its gain, by rounds where the step before was timed with it"
is "$(rows gemm_ladder | awk -F'\t' '{ s = 0; for (i = 28; i <= 35; i++) s += $i; if (s > 99.9 && s < 100.1) n++ } END { print n }')" 18 \
    "stalls add up to 100 %"
for figure in gemm_ladder gemm_ladder_counters_1 gemm_ladder_stalls_3; do
    like "$out" "^figure   $tmp/gemm_ladder/$figure\.(pdf|gp)\$" "$figure"
done

run raster --experts 1,3 --bands 1,16
is "$code" 0 "the raster"
is "$(rows raster | cut -f2,5,6 | tr '\t\n' ' ,')" \
    "1 cublaslt_dense -,1 sm90_ragged 1,1 sm90_ragged 16,3 cublaslt_dense -,3 sm90_ragged 1,3 sm90_ragged 16," \
    "a row a band, beside the dense product"
is "$(rows raster | awk -F'\t' '$13 > 0 && $14 > 0 && $16 > 0' | wc -l | tr -d ' ')" 6 "with hits and bytes"
for figure in raster_time raster_l2 raster_dram; do
    like "$out" "^figure   $tmp/raster/$figure\.(pdf|gp)\$" "$figure"
done

run wgrad_epilogue --ops wgrad_w2 --experts 3
is "$code" 0 "the epilogues"
like "$err" "^wgrad_epilogue: store is left out: " "without the GPU's stream of stores"
is "$(rows wgrad_epilogue | cut -f6-10 | tr '\t\n' ' ,')" \
    "dense 0 0 - -,write 0 0 5 192,load 1 0 4 192,load 1 1 4 192,load 1 0 5 192,load 1 1 5 192,write 0 0 4 256,write 0 0 3 256,write 0 0 2 256,write 0 0 4 128,reduce 1 0 4 256,reduce 1 0 3 256,reduce 1 0 2 256,reduce 1 0 4 128,reduce 1 1 4 256,load 1 0 4 256,load 1 0 3 256,load 1 0 2 256,load 1 0 4 128,zero 0 0 - -," \
    "a row a way, which all give right results"
is "$(rows wgrad_epilogue | awk -F'\t' '{ b[$6 $8 $9 $10] = $18 } END { print b["reduce14256"] - b["reduce04256"] - b["zero0--"] }')" 0 \
    "the bytes of a memset that is timed with it are counted"
for figure in wgrad_epilogue_3 wgrad_epilogue_zeroing wgrad_epilogue_bytes; do
    like "$out" "^figure   $tmp/wgrad_epilogue/$figure\.(pdf|gp)\$" "$figure"
done

WRONG="tail 8" run gemm_ladder --experts 3 --record
is "$code" 1 "steps that are wrong"
like "$err" "^gemm_ladder: fwd_w13, 3 experts, multinomial: \+ tails in steps of 8: .* are wrong; worst" "are named"
like "$err" "^gemm_ladder: 3 wrong: .*, and none is recorded\$" "and counted"
is "$(rows gemm_ladder | cut -f5 | tr '\n' ' ')" "0 1 2 3 4 5 " "the others have their rows"
[ ! -e experiments/recorded/cpu/gemm_ladder.tsv ]
result "and nothing is recorded" $?

finish
