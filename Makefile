# tilelab: `make run` reproduces the depth-scaling study on the best device of this machine,
# `make check` runs every test that needs no GPU. Both install what is missing first.
#
#   make                build/tilelab (static host) and build/tilelab_core.so (module for stock Lua)
#   make CUDA=0         the same without compiling any .cu (the default where there is no nvcc)
#   make V=1            prints the commands
#   make setup          only installs what is missing
#   make toolkit        installs the CUDA 13.0 compiler into build/toolkit, for machines without one
#   make SANITIZE=1     ASan and UBSan, into build/sanitize
#   make check-gpu      the tests that need a GPU; skipped, with the reason, where there is none
#   make check-gpu-sanitizer    compute-sanitizer over the self-test kernels and small grouped GEMMs
#   make figures        draws every figure again from experiments/recorded, without a GPU, and the README's images
#   make bench-check    holds the records against tests/targets.tsv
#   make lint           luacheck and cppcheck, where they are installed
#   make clean
#   make help           prints this text

TOOLKIT   = $(CURDIR)/build/toolkit
CUDA_HOME ?= $(or $(patsubst %/bin/nvcc,%,$(firstword $(shell command -v nvcc 2>/dev/null) \
             $(wildcard /usr/local/cuda/bin/nvcc $(TOOLKIT)/nvidia/cu13/bin/nvcc))),/usr/local/cuda)
CUDA      ?= $(if $(wildcard $(CUDA_HOME)/bin/nvcc),1,0)
SANITIZE  ?= 0
WERROR    ?= $(if $(CI),1,0)
BUILD     ?= build$(if $(filter 1,$(SANITIZE)),/sanitize)

CC        = gcc
NVCC      = $(CUDA_HOME)/bin/nvcc
LUA_CFLAGS = -I/usr/include/lua5.4
LUA_LIB   = $(firstword $(wildcard /usr/lib/*/liblua5.4.a) -llua5.4)
GOMP_LIB  = $(shell $(CC) -print-file-name=libgomp.a)

# No contraction into FMA: with vectors only across independent outputs, the CPU kernels then give
# the same bits on every machine. No errno and no traps, which changes no value either, so that
# comparisons and square roots become vectors.
CFLAGS   = -std=c11 -O3 -g -ffp-contract=off -fno-math-errno -fno-trapping-math -fPIC \
           -fvisibility=hidden -fopenmp -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion \
           $(if $(filter 1,$(WERROR)),-Werror)
CPPFLAGS = -D_GNU_SOURCE -DTL_CUDA=$(CUDA) -I. -I$(BUILD) $(LUA_CFLAGS) \
           $(if $(filter 1,$(CUDA)),-isystem $(CUDA_HOME)/include)
ifeq ($(SANITIZE),1)
CFLAGS  += -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
CPPFLAGS += -DTL_NO_CLONES
SANITIZE_LINK = -fsanitize=address,undefined
# Tests ask for more memory than there is, and expect to be refused.
export ASAN_OPTIONS ?= allocator_may_return_null=1
endif
NVCCFLAGS = -std=c++17 -O3 -lineinfo -gencode arch=compute_90a,code=sm_90a -I. -I$(BUILD) \
            -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra,-Wno-missing-field-initializers \
            -Xcompiler -fno-exceptions,-fno-rtti,-fno-threadsafe-statics
ARFLAGS  = rcs

# Counters and kernel records need CUPTI's headers. Without them core/cupti_none.c stands in.
CUPTI_INCLUDE = $(wildcard $(CUDA_HOME)/include $(CUDA_HOME)/extras/CUPTI/include)
CUPTI = $(if $(wildcard $(CUPTI_INCLUDE:%=%/cupti_range_profiler.h)),$(CUDA),0)
CUPTI_SOURCES = core/cupti.c core/cupti_host.c core/profiler.c core/activity.c core/pmsampling.c

SOURCES  = $(filter-out $(if $(filter 1,$(CUPTI)),core/cupti_none.c,$(CUPTI_SOURCES)),\
             $(wildcard core/*.c kernels/*.c kernels/*/*.c))
LUA_SOURCES = $(filter-out lua/main.c lua/loader.c lua/openmp.c,$(wildcard lua/*.c))
CU_SOURCES = $(if $(filter 1,$(CUDA)),$(wildcard core/*.cu kernels/*/*.cu))
OBJECTS  = $(SOURCES:%.c=$(BUILD)/obj/%.o) $(CU_SOURCES:%.cu=$(BUILD)/obj/%.cu.o)
LUA_OBJECTS = $(LUA_SOURCES:%.c=$(BUILD)/obj/%.o)
HOST_OBJECTS = $(BUILD)/obj/lua/main.o $(BUILD)/obj/lua/openmp.o
LOADER_OBJECTS = $(BUILD)/obj/lua/loader.o $(BUILD)/obj/lua/openmp.o
TEST_SOURCES = $(wildcard tests/core/test_*.c tests/kernels/test_*.c)
TESTS    = $(TEST_SOURCES:%.c=$(BUILD)/%)
TEST_LIB = $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out $(TEST_SOURCES),$(wildcard tests/core/*.c tests/kernels/*.c)))
# Of CUDA only the static runtime is linked; the driver and all other libraries are opened when
# they are needed (core/dynlib.h). Device code is compiled so that it needs no C++ library.
CUDA_LIBS = $(if $(filter 1,$(CUDA)),$(firstword $(wildcard $(CUDA_HOME)/lib64/libcudart_static.a \
            $(CUDA_HOME)/lib/libcudart_static.a)) -lrt -ldl -lpthread)

.PHONY: all run check check-c check-lua check-lua-host check-lua-stock check-cli lint clean setup help \
    check-all check-programs check-gpu check-gpu-sanitizer toolkit figures bench-check FORCE
.DELETE_ON_ERROR:
.SECONDARY:
$(if $(V),,.SILENT:)

all: $(BUILD)/tilelab $(BUILD)/tilelab_core.so $(BUILD)/tilelab_module.so

setup:
	@.ci/setup

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

# --- the program and the module -------------------------------------------------------------

# Everything but libc is linked statically, so that the binary starts on a machine that has
# neither Lua nor CUDA; -Wl,-E exports the Lua API to other C modules.
$(BUILD)/tilelab: $(HOST_OBJECTS) $(LUA_OBJECTS) $(BUILD)/libtilelab.a
	@echo "  LD    $@"
	$(CC) -o $@ $(HOST_OBJECTS) $(LUA_OBJECTS) $(BUILD)/libtilelab.a $(SANITIZE_LINK) \
	    -static-libgcc -Wl,-E $(LUA_LIB) $(CUDA_LIBS) $(GOMP_LIB) -lm -ldl -lpthread

# What stock Lua loads, in two parts; lua/loader.c says why. Neither is linked to liblua.
$(BUILD)/tilelab_core.so: $(LOADER_OBJECTS)
	$(CC) -shared -o $@ $(LOADER_OBJECTS) $(SANITIZE_LINK) -ldl

$(BUILD)/tilelab_module.so: $(LUA_OBJECTS) $(BUILD)/libtilelab.a
	$(CC) -shared -o $@ $(LUA_OBJECTS) $(BUILD)/libtilelab.a $(SANITIZE_LINK) $(CUDA_LIBS) -fopenmp -ldl -lm

$(BUILD)/libtilelab.a: $(OBJECTS)
	rm -f $@ && $(AR) $(ARFLAGS) $@ $(OBJECTS)

# Objects of a build with CUDA do not link into one without.
$(BUILD)/obj/with-cuda: FORCE
	@mkdir -p $(@D)
	@[ "$$(cat $@ 2>/dev/null)" = '$(CUDA)' ] || echo '$(CUDA)' > $@

$(BUILD)/obj/%.o: %.c $(BUILD)/obj/with-cuda | $(BUILD)/version.h
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# core/cupti_c/string: core/cupti_host.c says why.
$(CUPTI_SOURCES:%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/core/nvtx.o: \
    CPPFLAGS += $(CUPTI_INCLUDE:%=-isystem %)
$(BUILD)/obj/core/cupti_host.o: CPPFLAGS += -isystem core/cupti_c
$(BUILD)/obj/tests/core/test_occupancy.o: CPPFLAGS += $(CUPTI_INCLUDE:%=-isystem %)

$(BUILD)/obj/%.cu.o: %.cu | $(BUILD)/version.h
	@mkdir -p $(@D)
	@echo "  NVCC  $<"
	$(NVCC) $(NVCCFLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

# The first thing that is built, so it says what to do where the compiler or Lua's headers are
# missing. Rewritten only when the commit, the dirty flag or a kernel source changed.
$(BUILD)/version.h: FORCE
	@mkdir -p $(@D)
	@echo '#include <lua.h>' | $(CC) $(LUA_CFLAGS) -E - >/dev/null 2>&1 || { \
	    echo "$(CC) or the headers of Lua 5.4 are missing: \`make setup\` installs what is needed" >&2; exit 1; }
	@.ci/version '$(CC)' '$(if $(filter 1,$(CUDA)),$(NVCC))' > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

$(BUILD)/obj/core/provenance.o: $(BUILD)/version.h

# --- the CUDA compiler, where the machine has none --------------------------------------------

TOOLKIT_WHEELS = nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 \
    nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85 nvidia-cuda-cupti==13.0.85

toolkit: $(TOOLKIT)/nvidia/cu13/bin/nvcc

$(TOOLKIT)/nvidia/cu13/bin/nvcc:
	python3 -m pip install --quiet --no-deps --upgrade --target $(TOOLKIT) $(TOOLKIT_WHEELS)
	@$@ --version | grep release

# --- tests -----------------------------------------------------------------------------------

# A CUPTI and a driver that only pretend, for the profiler's tests without a GPU: one library under
# two names.
FAKES = $(if $(filter 1,$(CUPTI)),$(BUILD)/tests/core/fake/libcuda.so.1)
$(BUILD)/tests/core/fake/libcuda.so.1: $(wildcard tests/core/fake/*)
	@mkdir -p $(@D)
	@echo "  CC    tests/core/fake"
	$(CC) $(CPPFLAGS) -isystem core/cupti_c $(CUPTI_INCLUDE:%=-isystem %) -std=c11 -g -fPIC -shared \
	    -fvisibility=hidden -Wall -Wextra -o $(@D)/libcupti.so.13 $(filter %.c,$^)
	ln -sf libcupti.so.13 $@
$(addprefix $(BUILD)/tests/core/test_,profiler activity pmsampling): $(FAKES)

# And a cuDNN.
FAKE_CUDNN = $(if $(filter 1,$(CUDA)),$(BUILD)/tests/kernels/fake/libcudnn.so.9)
$(BUILD)/tests/kernels/fake/libcudnn.so.9: $(wildcard tests/kernels/fake/*) \
    kernels/attention/cudnn_abi.h
	@mkdir -p $(@D)
	@echo "  CC    tests/kernels/fake"
	$(CC) -I. -std=c11 -g -fPIC -shared -fvisibility=hidden -Wall -Wextra -o $@ $(filter %.c,$^)
$(BUILD)/tests/kernels/test_cudnn: $(FAKE_CUDNN)

$(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(TEST_LIB) $(BUILD)/libtilelab.a
	@mkdir -p $(@D)
	$(CC) -o $@ $< $(TEST_LIB) $(BUILD)/libtilelab.a $(SANITIZE_LINK) $(CUDA_LIBS) -lcmocka -fopenmp -ldl -lm

# Two steps, since what setup installs changes what the build finds. On all cores, unless told.
ALL_CORES = --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$$(nproc))

run: setup
	@$(MAKE) $(ALL_CORES) all
	@$$(command -v lua || command -v lua5.4) experiments/depth_scaling.lua $(ARGS)

check: setup
	@$(MAKE) $(ALL_CORES) all check-programs
	@tests/tally $(MAKE) --no-print-directory check-all
	@$(if $(filter 1,$(CUDA)),,echo "CUDA=0, $(NO_CUDA): $(words $(wildcard core/*.cu kernels/*/*.cu)) .cu files not compiled")

NO_CUDA = $(if $(wildcard $(NVCC)),as asked,since there is no nvcc in PATH or $(CUDA_HOME)/bin)

# Suite after suite, since some tests take times.
check-all:
	@$(MAKE) check-c
	@$(MAKE) check-lua
	@$(MAKE) check-cli

PROVE = prove --directives --exec

check-programs: $(TESTS) $(FAKES) $(FAKE_CUDNN)

check-c: check-programs
	@echo "-- C"
	$(PROVE) tests/exec $(TESTS)

# The same tests in the host and under stock Lua, which cannot load a sanitized module.
# One after the other: some tests take times.
check-lua: all
	$(MAKE) check-lua-host
	$(if $(filter 1,$(SANITIZE)),,$(MAKE) check-lua-stock)

check-lua-host: all
	@echo "-- Lua, in $(BUILD)/tilelab"
	TILELAB=$(BUILD)/tilelab $(PROVE) tests/exec tests/lua/test_*.lua

check-lua-stock: all
	@echo "-- Lua, the module under lua5.4"
	TILELAB= TILELAB_BUILD=$(BUILD) $(PROVE) tests/exec tests/lua/test_*.lua

check-cli: all
	@echo "-- command line"
	TILELAB=$(BUILD)/tilelab TILELAB_BUILD=$(BUILD) $(PROVE) tests/exec tests/cli/*.t

# Where there is a GPU but no Lua to build with, the binary that was brought along runs them.
check-gpu: $(if $(wildcard /usr/include/lua5.4/lua.h),all)
	@$(BUILD)/tilelab tests/gpu/run.lua $(ARGS)

# compute-sanitizer over the kernels that the profiler tests itself with, and over small cases of
# those with tensor cores and those bound by memory. What writes of the async proxy do, it does not see: tests/gpu/sanitized.lua.
check-gpu-sanitizer: $(if $(wildcard /usr/include/lua5.4/lua.h),all)
	@for tool in memcheck racecheck synccheck initcheck; do for test in probes sanitized sanitized_rows sanitized_step; do \
	    echo "-- $$tool, $$test"; compute-sanitizer --tool $$tool --error-exitcode 1 \
	    $(BUILD)/tilelab tests/gpu/$$test.lua || exit 1; done; done

# --- records ---------------------------------------------------------------------------------

# The README's images lie beside the records that they are drawn from.
figures: all
	$(BUILD)/tilelab figures
	@for image in experiments/recorded/*/*.png; do drawn=out/figures/$${image#experiments/recorded/}; \
	    [ ! -e "$$drawn" ] || cp "$$drawn" "$$image"; done

# No part of check: it tells what was measured, not whether the code is right.
bench-check: all
	$(BUILD)/tilelab bench-check

# Luacheck's 581 would have `not (x <= y)` written so that NaN passes; the three of cppcheck do not
# see that a loop or a condition has bounded the value.
lint:
	@if command -v luacheck >/dev/null; then luacheck -q --std lua54 --max-line-length 120 \
	    --ignore 581 -- lua experiments tests/lua tests/gpu; \
	    else echo "luacheck is not installed: Lua is not linted"; fi
	@if command -v cppcheck >/dev/null; then cppcheck --quiet --std=c11 --error-exitcode=1 \
	    --enable=warning,performance,portability --suppress=zerodivcond \
	    --suppress=arrayIndexOutOfBoundsCond --suppress=invalidFunctionArg -I. lua core kernels; \
	    else echo "cppcheck is not installed: C is not linted"; fi

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)

clean:
	@mkdir -p build
	find build -mindepth 1 -maxdepth 1 ! -name toolkit -exec rm -rf {} +
