# The machine code of the tensor core kernels: wgmma is in it, and nothing was spilled to local
# memory. Needs cuobjdump, which takes device code out of a program (nvdisasm alone cannot).
. tests/cli/tap.sh

# In PATH, in a CUDA installation, in the compiler of `make toolkit`, or among Python's packages.
find_cuobjdump() {
    command -v cuobjdump && return
    packages=$(python3 -c 'import nvidia; print("\n".join(nvidia.__path__))' 2>/dev/null)
    for folder in "${CUDA_HOME:-/usr/local/cuda}" /usr/local/cuda "$root"/build/toolkit/nvidia/cu* \
        "$packages"/cu* "$packages"/cuda_nvcc "$packages"/cuda_cuobjdump; do
        [ -x "$folder/bin/cuobjdump" ] && echo "$folder/bin/cuobjdump" && return
    done
}

# Of a listing: a line for each kernel, "SOURCE NAME HGMMAS LOCALS", how many instructions of each kind.
# Kernels of two sources may share a name.
count_instructions() {
    awk '
    /^Fatbin/ { source = "?" }
    /^identifier = / { source = $3 }
    /Function :/ { name = source " " $NF; names[name] }
    /[ \t]HGMMA/ { hgmma[name]++ }
    /[ \t](LDL|STL)[. ]/ { locals[name]++ }
    END { for (name in names) print name, hgmma[name] + 0, locals[name] + 0 }' | sort
}

# Of such lines on stdin, those of kernel $2 in source $1: " NAME HGMMAS LOCALS" each.
of_kernel() {
    awk -v source="$1" -v kernel="$2" '
    $1 == source && index($2, length(kernel) kernel) { print "", $2, $3, $4 }'
}

out=$(count_instructions <<'LISTING'
Fatbin elf code:
identifier = kernels/a/one.cu
		Function : _Z10one_kernelv
        /*0010*/                   LDL.64 R2, [R1] ;
        /*0020*/                   HGMMA.64x256x16.F32.BF16 R24, gdesc[UR8], RZ, !UPT ;
        /*0030*/              @!P0 STL [R1+0x8], R3 ;
		Function : _Z13another_kernelv
        /*0010*/                   LDS R2, [R1] ;
        /*0020*/                   STG.E [R4.64], R2 ;
Fatbin elf code:
identifier = kernels/b/one.cu
		Function : _Z10one_kernelILi1EEvv
        /*0020*/                   HGMMA.64x256x16.F32.BF16 R24, gdesc[UR8], RZ, !UPT ;
Fatbin elf code:
		Function : _Z10one_kernelv
LISTING
)
is "$out" "? _Z10one_kernelv 0 0
kernels/a/one.cu _Z10one_kernelv 1 2
kernels/a/one.cu _Z13another_kernelv 0 0
kernels/b/one.cu _Z10one_kernelILi1EEvv 1 0" "instructions are counted by source and kernel"
is "$(echo "$out" | of_kernel kernels/a/one.cu one_kernel)" " _Z10one_kernelv 1 2" "one kernel of one source"
is "$(echo "$out" | of_kernel kernels/b/one.cu another_kernel)" "" "which has no other"

# What multiplies on tensor cores; its kernel in <operation>/sm90_x.cu is x_kernel.
tabled=$(sed -n 's/^TL_KERNEL(\([mk]_grouped_gemm\), \(sm90_.*\))/\1\/\2/p' kernels/table.def | sort)
cat > "$tmp/kernels.lua" <<'LUA'
for _, kernel in ipairs(require("tilelab").kernels()) do print(kernel.operation .. "/" .. kernel.variant) end
LUA
capture "$tilelab" "$tmp/kernels.lua"
is $code 0 "the program lists its kernels"
like "$out" "^m_grouped_gemm/cpu_" "those of the CPU in any case"
built=$(printf '%s\n' "$out" | grep '^[mk]_grouped_gemm/sm90_' | sort)
cuobjdump=$(find_cuobjdump)
if ! printf '%s\n' "$out" | grep -q "/smxx_"; then
    skip "the program was built without CUDA"
elif [ -z "$cuobjdump" ]; then
    skip "there is no cuobjdump in PATH, \$CUDA_HOME/bin or Python's nvidia packages"
else
    is "$built" "$tabled" "it has those with tensor cores that the table has"
    like "$built" "^m_grouped_gemm/sm90_ragged$" "m_grouped_gemm/sm90_ragged among them"
    like "$built" "^k_grouped_gemm/sm90_ragged$" "and k_grouped_gemm/sm90_ragged"
    capture "$cuobjdump" -sass "$tilelab"
    is $code 0 "cuobjdump lists the code"
    count_instructions < "$tmp/stdout" > "$tmp/counts"
    out=$(cat "$tmp/counts")
    for kernel in $built; do
        counts=$(of_kernel "kernels/$kernel.cu" "${kernel#*/sm90_}_kernel" < "$tmp/counts")
        like "$counts" "." "$kernel is there"
        is "$(printf '%s\n' "$counts" | awk '!($2 > 0)')" "" "$kernel has wgmma in all its forms"
        is "$(printf '%s\n' "$counts" | awk '$3 != "0"')" "" "$kernel leaves local memory alone"
    done
    is "$(awk '$3 && $4 { print $1, $2 }' "$tmp/counts")" "" "and so does all that has wgmma"
fi
finish
