# Experiments on the training step with kernels of the CPU in the place of a GPU's (tests/lua/fake_step.lua).
. tests/cli/tap.sh

fake() { capture "$tilelab" tests/lua/fake_step.lua "$@"; }
rows() { grep -vc '^#' "$1"; }

small="--model tiny --precision fp32 --micro-batch 1 --updates 2 --warmup 1 --rounds 2"
fake experiments/layer_breakdown.lua $small --out "$tmp/b"
is "$code" 0 "layer_breakdown"
like "$out" "^padding copies " "it ends with the split of the gain"
like "$out" "layer_time" "and its figures"
columns="backend layers precision pass kernel_class launches time_us share_of_update logical_gbps copy_ratio tflops"
is "$(grep -v '^#' "$tmp/b/layer_breakdown.tsv" | head -n 1 | tr '\t' ' ')" \
    "$columns tensor_pct occupancy_pct idle_pct" "columns of the record"
is "$(grep -c '^# flag_attention: cpu_plain$' "$tmp/b/layer_breakdown.tsv" "$tmp/b/step_timeline.tsv" | sed 's/.*://' |
    tr '\n' ' ')" "1 1 " "the provenance says whose attention ran"
like "$err" "^attention: cpu_plain; cuDNN needs a GPU\$" "and why, on standard error"
is "$(rows "$tmp/b/step_gemm_cycles.tsv")" 55 "six products of three backends at one layer, twelve at two"
is "$(grep -c 'rapidgemm	[12]	fp32	[a-z]*	padding' "$tmp/b/layer_breakdown.tsv")" 0 "nothing pads where nothing is padded"
is "$(grep -c 'deepgemm_copy	[12]	fp32	[a-z]*	padding' "$tmp/b/layer_breakdown.tsv")" 4 "padding in both passes where there are copies"

FAIL=counters fake experiments/layer_breakdown.lua $small --backends rapidgemm --layers 1 --out "$tmp/c"
is "$code" 0 "refused counters"
like "$err" "counters: left out: counters are for administrators" "are said"
like "$(grep 'forward	norm' "$tmp/c/layer_breakdown.tsv" | tr '\t' '|')" "|-|-|[0-9.]*\$" "and leave dashes"

FAIL=counting fake experiments/layer_breakdown.lua $small --backends rapidgemm --layers 1 --out "$tmp/k"
is "$code" 0 "counters that fail on the way"
like "$err" "counters: left out: the driver lost the counters" "are said too"
is "$(rows "$tmp/k/step_gemm_cycles.tsv")" 7 "and no session stays open while grouped GEMMs are timed"

FAIL=order fake experiments/layer_breakdown.lua $small --backends rapidgemm --out "$tmp/o"
is "$code" 1 "an update that launches something else: exit 1"
like "$err" "where .* was launched before: the step does not launch the same each time" "and what"

capture "$tilelab" tests/lua/fake_step.lua experiments/layer_breakdown.lua --backends rapid --out "$tmp/n"
is "$code" 2 "a backend that is none"
like "$err" "there is no backend 'rapid'; choose from rapidgemm" "is named"

fake experiments/elementwise.lua --only rope,router --tokens 64 --check-tokens 64 --rounds 6 --out "$tmp/e"
is "$code" 0 "elementwise"
is "$(rows "$tmp/e/elementwise.tsv")" 4 "rope in two precisions and the router"
FAIL=wrong fake experiments/elementwise.lua --only rope,router --tokens 64 --check-tokens 64 --rounds 6 --out "$tmp/w"
is "$code" 1 "a kernel that gives wrong results: exit 1"
like "$err" "rope, queries and keys, fp32: wrong at 64 tokens: qkv: relative error" "and which"
is "$(rows "$tmp/w/elementwise.tsv")" 2 "with the others' rows"

fake experiments/elementwise.lua --only rope,ropes --out "$tmp/n"
is "$code" 2 "an operation that is none"
like "$err" "--only: there is no 'ropes' among them; choose from rmsnorm, rmsnorm_backward, rope, " "is named"
fake experiments/elementwise.lua --only rope --record --out "$tmp/n"
is "$code" 2 "a record of a part"
like "$err" "--only measures a part; --record keeps the whole" "is refused"

attention="experiments/attention.lua --tokens 64 --sequences 32 --check-sequence 20 --rounds 6"
FAIL=wrong fake $attention --out "$tmp/aw"
is "$code" 1 "attention that gives wrong results: exit 1"
like "$err" "^attention cudnn_sdpa, sequence 32: wrong at 20 tokens: lse: relative error" "and which"
FAIL=missing fake $attention --out "$tmp/am"
is "$code" 2 "without its library"
like "$err" "^attention cudnn_sdpa, sequence 32: left out: cuDNN is not installed\$" "the reason is said"
like "$err" "^attention: no variant runs on cpu\$" "and that nothing was measured"

fake experiments/attention.lua --tokens 64 --sequences 32,64 --check-sequence 20 --rounds 6 --out "$tmp/a"
is "$code" 0 "attention"
is "$(rows "$tmp/a/attention.tsv")" 7 "forward and two backward, two lengths"

fake experiments/loss_agreement.lua --updates 2 --precisions fp32 --out "$tmp/l"
is "$code" 0 "loss_agreement"
like "$out" "^losses of 2 updates are within 0.00e.00 of the CPU's\$" "the CPU agrees with itself"
like "$(cat "$tmp/l/loss_agreement.tsv")" "^# attention: cpu_plain\$" "the provenance says whose attention ran"

finish
