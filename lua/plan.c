/* Plans: a kernel bound to its tensors, ready to launch.
 *
 *   lab.plan{op = "gemm", variant = "cpu_plain", a = tensor, ..., layout = "nt", beta = 1,
 *            tunables = {block_m = 128}} -> plan | nil, message, "illegal"
 *       arguments and parameters share the table's keys; with workspaces = table, plans that were
 *       given the same table share a workspace of the same size, where their kernels keep nothing
 *       in it: such plans must run one after the other, on one stream
 *   lab.legal{the same} -> true | false, reason
 *   plan:launch([stream[, count]])    raises whatever fails: an ignored nil would spoil a
 *       measurement; `count` launches, at least 1, from a loop in C, to tell what Lua adds
 *   plan:flops() plan:bytes()                 logical, of the equation
 *   plan:tunables() -> {name = value}         plan:set_tunable(name, value) -> plan
 *   plan:tune([stream]) -> {name = value}, {us, ...}    times candidates on the plan's tensors;
 *       what it took for each choice of the first tunable, NaN where that cannot run
 *   plan:algorithm() -> text | nil            names a library's own algorithm behind the tunables
 *   plan:workspace() -> bytes                 plan.op plan.variant plan.device
 *   plan:close()                              lets the tensors go
 *
 * The plan holds references to its tensors' memory, so they may be collected or closed. A launch is
 * one type check and the kernel: no allocation, no look-up.
 */
#include "binding.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "core/kernel.h"

#define PLAN_TYPE "tilelab.plan"
enum { MAX_FIELDS = TL_MAX_ARGS + TL_MAX_PARAMS + 5 };

struct plan_box {
    struct tl_plan plan; /* kernel is NULL until it is bound, and once closed */
    struct tl_args args;
    struct tl_tensor workspace;
};

/* --- accessors --- */

static struct plan_box *check(lua_State *L)
{
    struct plan_box *box = luaL_checkudata(L, 1, PLAN_TYPE);
    if (!box->plan.kernel)
        luaL_error(L, "this plan is closed");
    return box;
}

static struct plan_box *push_plan(lua_State *L)
{
    struct plan_box *box = lua_newuserdatauv(L, sizeof *box, 0);
    memset(box, 0, sizeof *box);
    luaL_setmetatable(L, PLAN_TYPE);
    return box;
}

/* --- reading the table --- */

/* Leaves the name on the stack: a table with a metatable need not keep it. */
static const char *check_name(lua_State *L, const char *field)
{
    if (lua_getfield(L, 1, field) != LUA_TSTRING)
        luaL_error(L, "a plan needs %s = \"name\"", field);
    return lua_tostring(L, -1);
}

/* Raises for a field that is neither the plan's own nor an argument or parameter. */
static void check_fields(lua_State *L, const struct tl_operation *operation)
{
    const char *names[MAX_FIELDS] = {"op", "variant", "tunables", "workspaces"};
    int count = 4;
    for (int i = 0; i < TL_MAX_ARGS && operation->args[i].name; i++)
        names[count++] = operation->args[i].name;
    for (int i = 0; i < TL_MAX_PARAMS && operation->params[i].name; i++)
        names[count++] = operation->params[i].name;
    names[count] = NULL;
    tlua_keys_check(L, 1, operation->name, names);
}

/* References to the tensors of the table; raises where an argument is something else. */
static void read_tensors(lua_State *L, const struct tl_operation *operation, struct tl_args *args)
{
    for (int i = 0; i < TL_MAX_ARGS && operation->args[i].name; i++) {
        const char *name = operation->args[i].name;
        if (lua_getfield(L, 1, name) != LUA_TNIL) {
            if (!luaL_testudata(L, -1, TLUA_TENSOR))
                luaL_error(L, "%s: '%s' must be a tensor, not a %s", operation->name, name,
                           luaL_typename(L, -1));
            const struct tl_tensor *tensor = lua_touserdata(L, -1);
            if (tensor->rank == 0)
                luaL_error(L, "%s: '%s' is a closed tensor", operation->name, name);
            enum tl_status status = tl_tensor_view(&args->tensor[i], tensor, 0, tensor->rank,
                                                   tensor->shape);
            if (status != TL_OK)
                tlua_raise(L, status);
        }
        lua_pop(L, 1);
    }
}

/* The position of `value` in a list of words; raises where it is not there. */
static int choice_position(lua_State *L, const struct tl_operation *operation,
                           const struct tl_param_spec *spec, const char *value)
{
    size_t wanted = strlen(value);
    const char *words = spec->choices;
    for (int position = 0; *words; position++) {
        size_t length = strcspn(words, " ");
        if (length == wanted && memcmp(words, value, length) == 0)
            return position;
        words += length;
        words += strspn(words, " ");
    }
    return luaL_error(L, "%s: parameter '%s' is '%s'; choices are: %s", operation->name, spec->name,
                      value, spec->choices);
}

static void read_params(lua_State *L, const struct tl_operation *operation, double *param)
{
    tl_operation_defaults(operation, param);
    for (int i = 0; i < TL_MAX_PARAMS && operation->params[i].name; i++) {
        const struct tl_param_spec *spec = &operation->params[i];
        int type = lua_getfield(L, 1, spec->name);
        if (type != LUA_TNIL) {
            if (type != (spec->choices ? LUA_TSTRING : LUA_TNUMBER))
                luaL_error(L, "%s: parameter '%s' must be a %s, not a %s", operation->name,
                           spec->name, spec->choices ? "string" : "number", lua_typename(L, type));
            param[i] = spec->choices ? choice_position(L, operation, spec, lua_tostring(L, -1))
                                     : lua_tonumber(L, -1);
        }
        lua_pop(L, 1);
    }
}

static enum tl_status set_tunable(lua_State *L, struct tl_plan *plan, const char *name, int index)
{
    int is_integer;
    lua_Integer value = lua_tointegerx(L, index, &is_integer);
    if (!is_integer || value < 1 || value > INT_MAX)
        return TL_FAIL(TL_ERR_ARGUMENT, "tunable '%s' takes a positive integer", name);
    return tl_plan_set(plan, name, (int)value);
}

static enum tl_status read_tunables(lua_State *L, struct tl_plan *plan)
{
    enum tl_status status = TL_OK;
    int type = lua_getfield(L, 1, "tunables");
    if (type != LUA_TNIL && type != LUA_TTABLE)
        status = TL_FAIL(TL_ERR_ARGUMENT, "tunables must be a table {name = value}");
    if (type == LUA_TTABLE) {
        for (lua_pushnil(L); status == TL_OK && lua_next(L, -2); lua_pop(L, 1)) {
            if (lua_type(L, -2) == LUA_TSTRING)
                status = set_tunable(L, plan, lua_tostring(L, -2), -1);
            else
                status = TL_FAIL(TL_ERR_ARGUMENT, "tunables are named: {name = value}");
        }
    }
    return status;
}

/* Makes the workspace at least as large as the plan's tunables ask for. */
static enum tl_status provide_workspace(lua_State *L, struct plan_box *box)
{
    int64_t bytes = (int64_t)tl_plan_workspace(&box->plan);
    if (bytes == 0 || tl_tensor_numel(&box->workspace) >= bytes)
        return TL_OK;
    struct tl_tensor *grown = tlua_tensor_new(L);
    TL_TRY(tlua_tensor_allocate(L, grown, box->plan.device, TL_U8, 1, &bytes));
    struct tl_tensor smaller = box->workspace;
    box->workspace = *grown;
    *grown = smaller; /* goes with its userdata */
    box->args.workspace = box->workspace.data;
    return box->plan.device->api->fill(box->workspace.data, 0, (size_t)bytes, NULL);
}

/* A workspace out of the table `workspaces` of index 1, or into it. */
static enum tl_status share_workspace(lua_State *L, struct plan_box *box)
{
    int64_t bytes = (int64_t)tl_plan_workspace(&box->plan);
    int type = lua_getfield(L, 1, "workspaces");
    if (type != LUA_TNIL && type != LUA_TTABLE)
        return TL_FAIL(TL_ERR_ARGUMENT, "workspaces must be a table that plans share");
    if (type == LUA_TNIL || bytes == 0 || !box->plan.kernel->transient_workspace)
        return TL_OK;
    if (lua_geti(L, -1, bytes) == LUA_TNIL) {
        TL_TRY(provide_workspace(L, box));
        lua_settop(L, 2);
        lua_getfield(L, 1, "workspaces");
        struct tl_tensor *kept = tlua_tensor_new(L);
        TL_TRY(tl_tensor_view(kept, &box->workspace, 0, 1, &bytes));
        lua_seti(L, -2, bytes);
        return TL_OK;
    }
    const struct tl_tensor *kept = tlua_tensor_check(L, -1);
    if (kept->device != box->plan.device)
        return TL_FAIL(TL_ERR_ARGUMENT, "plans of %s and %s cannot share workspaces",
                       kept->device->name, box->plan.device->name);
    TL_TRY(tl_tensor_view(&box->workspace, kept, 0, 1, &bytes));
    box->args.workspace = box->workspace.data;
    return TL_OK;
}

/* After a change of tunables, which is taken back where its workspace is refused. */
static enum tl_status keep_or_restore(lua_State *L, struct plan_box *box, enum tl_status status,
                                      const int before[TL_MAX_TUNABLES])
{
    if (status == TL_OK)
        status = provide_workspace(L, box);
    if (status != TL_OK)
        memcpy(box->plan.tunable, before, sizeof box->plan.tunable);
    return status;
}

static void release(struct plan_box *box)
{
    for (int i = 0; i < TL_MAX_ARGS; i++)
        tl_tensor_done(&box->args.tensor[i]);
    tl_tensor_done(&box->workspace);
    memset(box, 0, sizeof *box);
}

/* Fills the box from the table at index 1. */
static enum tl_status bind(lua_State *L, struct plan_box *box)
{
    const struct tl_operation *operation;
    const struct tl_kernel *kernel;
    struct tl_device *device = NULL;
    struct tl_problem problem;
    double param[TL_MAX_PARAMS] = {0};
    const char *op = check_name(L, "op"), *variant = check_name(L, "variant");
    TL_TRY(tl_operation_find(op, &operation));
    TL_TRY(tl_kernel_find(op, variant, &kernel));
    check_fields(L, operation);
    read_tensors(L, operation, &box->args);
    read_params(L, operation, param);
    TL_TRY(tl_problem_bind(&problem, operation, &box->args, param));
    for (int i = 0; i < TL_MAX_ARGS && !device; i++)
        if (operation->args[i].role != TL_IN_HOST)
            device = box->args.tensor[i].device;
    TL_TRY(tl_plan_init(&box->plan, kernel, device, &problem));
    return read_tunables(L, &box->plan);
}

/* --- functions --- */

static int plan_create(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    struct plan_box *box = push_plan(L);
    enum tl_status status = bind(L, box);
    lua_settop(L, 2);
    if (status == TL_OK)
        status = share_workspace(L, box);
    if (status == TL_OK)
        status = provide_workspace(L, box);
    if (status == TL_OK)
        status = tl_plan_bind(&box->plan, &box->args);
    if (status != TL_OK)
        return tlua_refused(L, status);
    lua_settop(L, 2);
    return 1;
}

static int plan_legal(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    struct plan_box *box = push_plan(L);
    enum tl_status status = bind(L, box);
    release(box);
    if (status != TL_OK && status != TL_ERR_ILLEGAL)
        return tlua_raise(L, status);
    lua_pushboolean(L, status == TL_OK);
    if (status == TL_OK)
        return 1;
    lua_pushstring(L, tl_error_message());
    return 2;
}

/* For the graph that is being captured. */
static void keep_tensors(lua_State *L, const struct plan_box *box)
{
    for (int i = 0; i < TL_MAX_ARGS; i++)
        if (box->args.tensor[i].rank > 0)
            tlua_graph_keep(L, &box->args.tensor[i]);
    if (box->workspace.rank > 0)
        tlua_graph_keep(L, &box->workspace);
}

static int plan_launch(lua_State *L)
{
    const struct plan_box *box = check(L);
    struct tl_stream *stream = tlua_stream_opt(L, 2, box->plan.device);
    lua_Integer count = luaL_optinteger(L, 3, 1);
    enum tl_status status = TL_OK;
    luaL_argcheck(L, count >= 1, 3, "a count of launches is at least 1");
    tlua_interrupt_check(L);
    if (tlua_graph_captures(box->plan.device))
        keep_tensors(L, box);
    for (lua_Integer i = 0; i < count && status == TL_OK; i++)
        status = tl_plan_launch(&box->plan, &box->args, stream);
    return status == TL_OK ? 0 : tlua_raise(L, status);
}

static int plan_flops(lua_State *L)
{
    const struct tl_problem *problem = &check(L)->plan.problem;
    lua_pushnumber(L, problem->operation->flops(problem));
    return 1;
}

static int plan_bytes(lua_State *L)
{
    const struct tl_problem *problem = &check(L)->plan.problem;
    lua_pushnumber(L, problem->operation->bytes(problem));
    return 1;
}

static int plan_tunables(lua_State *L)
{
    const struct tl_plan *plan = &check(L)->plan;
    lua_newtable(L);
    for (int i = 0; i < TL_MAX_TUNABLES && plan->kernel->tunables[i].name; i++) {
        lua_pushinteger(L, plan->tunable[i]);
        lua_setfield(L, -2, plan->kernel->tunables[i].name);
    }
    return 1;
}

static int plan_set_tunable(lua_State *L)
{
    struct plan_box *box = check(L);
    int before[TL_MAX_TUNABLES];
    memcpy(before, box->plan.tunable, sizeof before);
    enum tl_status status = set_tunable(L, &box->plan, luaL_checkstring(L, 2), 3);
    status = keep_or_restore(L, box, status, before);
    if (status != TL_OK)
        return tlua_raise(L, status);
    lua_settop(L, 1);
    return 1;
}

static int plan_tune(lua_State *L)
{
    struct plan_box *box = check(L);
    struct tl_stream *stream = tlua_stream_opt(L, 2, box->plan.device);
    int before[TL_MAX_TUNABLES];
    enum tl_status status = TL_OK;
    memcpy(before, box->plan.tunable, sizeof before);
    if (box->plan.kernel->tune)
        status = box->plan.kernel->tune(&box->plan, &box->args,
                                        stream ? stream : box->plan.device->default_stream);
    status = keep_or_restore(L, box, status, before);
    if (status != TL_OK)
        return tlua_raise(L, status);
    plan_tunables(L);
    lua_newtable(L);
    for (int i = 0; i < TL_MAX_TRIALS && box->plan.trial_us[i] != 0; i++) {
        lua_pushnumber(L, box->plan.trial_us[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 2;
}

static int plan_algorithm(lua_State *L)
{
    const struct tl_plan *plan = &check(L)->plan;
    char text[TL_ALGORITHM_TEXT] = "";
    if (plan->kernel->algorithm)
        plan->kernel->algorithm(plan, text);
    if (text[0])
        lua_pushstring(L, text);
    else
        lua_pushnil(L);
    return 1;
}

static int plan_workspace(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)tl_plan_workspace(&check(L)->plan));
    return 1;
}

static int plan_close(lua_State *L)
{
    release(luaL_checkudata(L, 1, PLAN_TYPE));
    return 0;
}

static int plan_fields(lua_State *L)
{
    static const char *const names[] = {"op", "variant", "device", NULL};
    const char *name = lua_tostring(L, 2);
    if (name && strcmp(name, "op") == 0)
        lua_pushstring(L, check(L)->plan.kernel->operation);
    else if (name && strcmp(name, "variant") == 0)
        lua_pushstring(L, check(L)->plan.kernel->variant);
    else if (name && strcmp(name, "device") == 0)
        tlua_device_push(L, check(L)->plan.device);
    else
        return tlua_method(L, "plan", names);
    return 1;
}

static int plan_tostring(lua_State *L)
{
    const struct plan_box *box = luaL_checkudata(L, 1, PLAN_TYPE);
    if (box->plan.kernel)
        lua_pushfstring(L, "plan %s/%s %s", box->plan.kernel->operation, box->plan.kernel->variant,
                        box->plan.device->name);
    else
        lua_pushliteral(L, "plan (closed)");
    return 1;
}

/* --- tables --- */

static const luaL_Reg functions[] = {
    {"plan", plan_create},
    {"legal", plan_legal},
    {NULL, NULL},
};

static const luaL_Reg methods[] = {
    {"launch", plan_launch},
    {"flops", plan_flops},
    {"bytes", plan_bytes},
    {"tunables", plan_tunables},
    {"set_tunable", plan_set_tunable},
    {"tune", plan_tune},
    {"algorithm", plan_algorithm},
    {"workspace", plan_workspace},
    {"close", plan_close},
    {NULL, NULL},
};

static const luaL_Reg meta[] = {
    {"__gc", plan_close},
    {"__close", plan_close},
    {"__tostring", plan_tostring},
    {NULL, NULL},
};

void tlua_plan_open(lua_State *L)
{
    tlua_metatable(L, PLAN_TYPE, meta, methods, plan_fields);
    luaL_setfuncs(L, functions, 0);
}
