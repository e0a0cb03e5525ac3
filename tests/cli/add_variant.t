#!/bin/sh
# A kernel variant takes one file and one table row: adds one to a scratch copy and runs it.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
echo 1..4

# The sources as they are now, and the objects built so far, so that little is compiled again. No
# git: this may be an unpacked archive, or belong to another account.
(cd "$root" && tar cf - --exclude=./.git --exclude=./build --exclude=./out .) | tar xf - -C "$scratch"
mkdir -p "$scratch/build" && cp -a "$root/build/obj" "$scratch/build/" 2>/dev/null

cat > "$scratch/kernels/swiglu/cpu_rounded.c" <<'C'
/* swiglu by way of the reference, with the output rounded to integers: a variant for a test. */
#include "kernels/swiglu/op.h"

#include <math.h>
#include <string.h>

extern const struct tl_kernel tl_kernel_swiglu_cpu_plain;

/* The workspace grows with the tunable; tune prefers the largest choice. */
static size_t workspace(const struct tl_plan *plan)
{
    return (size_t)plan->tunable[0] << 20;
}

static enum tl_status tune(struct tl_plan *plan, const struct tl_args *args,
                           struct tl_stream *stream)
{
    (void)args, (void)stream;
    return tl_plan_set(plan, "block_m", 4);
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    TL_TRY(tl_kernel_swiglu_cpu_plain.launch(plan, args, stream));
    memset(args->workspace, 1, workspace(plan));
    float *y = args->tensor[tl_operation_arg(plan->problem.operation, "y")].data;
    y[0] = rintf(y[0]);
    return TL_OK;
}

const struct tl_kernel tl_kernel_swiglu_cpu_rounded = {
    .operation = "swiglu",
    .variant = "cpu_rounded",
    .arch = "cpu",
    .summary = "The reference, its first output rounded.",
    .tunables = {{.name = "block_m", .fallback = 1, .choices = (const int[]){1, 2, 4, 0}}},
    .workspace = workspace,
    .tune = tune,
    .launch = launch,
};
C
echo 'TL_KERNEL(swiglu, cpu_rounded)' >> "$scratch/kernels/table.def"

if make -C "$scratch" -j2 BUILD=build all > "$scratch/log" 2>&1; then
    echo "ok 1 - builds with one file and one row more"
else
    sed 's/^/# /' "$scratch/log" | tail -n 20
    echo "not ok 1 - builds with one file and one row more"
fi

cat > "$scratch/use.lua" <<'LUA'
local lab = require "tilelab"
local device = lab.device "cpu"
local x = lab.tensor { device = device, dtype = "fp32", shape = { 1, 2 } }
x:assign { 3, 1 }
local y = lab.tensor { device = device, dtype = "fp32", shape = { 1, 1 } }
assert(lab.plan { op = "swiglu", variant = "cpu_rounded", x = x, y = y }):launch()
print(y:get(1, 1))
LUA
got=$("$scratch/build/tilelab" "$scratch/use.lua" 2>&1)
if [ "$got" = "3.0" ]; then
    echo "ok 2 - runs by its name from Lua" # silu(3) * 1 = 2.858
else
    echo "# got: $got"
    echo "not ok 2 - runs by its name from Lua"
fi

cat > "$scratch/tune.lua" <<'LUA'
local lab = require "tilelab"
local args = { op = "swiglu", variant = "cpu_rounded", tunables = { block_m = 2 },
  x = lab.tensor { shape = { 1, 2 }, fill = 1 }, y = lab.tensor { shape = { 1, 1 } } }
local plan = lab.plan(args)
local sizes = { plan:workspace() >> 20 }
plan:launch()
sizes[2] = plan:set_tunable("block_m", 1):workspace() >> 20
plan:launch()
sizes[3] = plan:tune().block_m
sizes[4] = plan:workspace() >> 20
plan:launch()
args.tunables.block_m = 3
local _, message = pcall(lab.plan, args)
print(table.concat(sizes, " "), plan:tunables().block_m, lab.kernels("swiglu")[#lab.kernels "swiglu"].tunables[1].choices[3], message)
LUA
got=$("$scratch/build/tilelab" "$scratch/tune.lua" 2>&1)
case $got in
"2 1 4 4	4	4	"*"block_m cannot be 3"*) echo "ok 3 - tunables set, tuned and refused, with their workspace" ;;
*)
    echo "# got: $got"
    echo "not ok 3 - tunables set, tuned and refused, with their workspace"
    ;;
esac

# A row whose variant does not begin with its arch is refused, by name.
sed -i 's/cpu_rounded/gpu_rounded/' "$scratch/kernels/swiglu/cpu_rounded.c" "$scratch/kernels/table.def"
make -C "$scratch" -j2 BUILD=build all >> "$scratch/log" 2>&1
got=$("$scratch/build/tilelab" "$scratch/use.lua" 2>&1)
case $got in
*"swiglu/gpu_rounded"*"begin with"*) echo "ok 4 - a misnamed variant is refused at start" ;;
*)
    echo "# got: $got"
    echo "not ok 4 - a misnamed variant is refused at start"
    ;;
esac
