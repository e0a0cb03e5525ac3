/* Profiling sessions (core/profiler.h); lua/tilelab/profile.lua is what scripts use.
 *
 *   core.counters(device) -> the chip's name | nil, message, code     whether counters can be read
 *   core.profiler{device =, metrics = {names}, max_passes = 0, kernels = 0} -> session
 *       | nil, message, code; kernels > 0: each kernel by itself, at most that many
 *   session:run(fn[, flush]) -> list with a table {metric = value} for each range; a ratio without
 *       a denominator is absent. `flush` is what precedes every pass: true for an empty and clean
 *       L2 cache, a function to be called, nil for nothing. Raises whatever fails; the session is
 *       closed then
 *   session.passes      session:close()      core.profiling() -> whether a run is on
 */
#include "binding.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "core/profiler.h"

#define SESSION_TYPE "tilelab.profiler"

struct session_box {
    struct tl_profiler *profiler; /* NULL once closed */
    struct tl_device *device;
};

/* What the callbacks of a run see: positions of the functions, and the error that one raised. */
struct run {
    lua_State *L;
    int run, flush;
    struct tl_device *device;
    bool raised; /* the error value is on top of the stack */
};

/* --- accessors --- */

static struct session_box *check(lua_State *L)
{
    struct session_box *box = luaL_checkudata(L, 1, SESSION_TYPE);
    if (!box->profiler)
        luaL_error(L, "this profiling session is closed");
    return box;
}

static struct tl_device *check_device(lua_State *L, int index, enum tl_status *status)
{
    if (lua_isnil(L, index))
        luaL_error(L, "device is missing");
    return tlua_device_get(L, index, status);
}

/* --- functions --- */

static int counters(lua_State *L)
{
    enum tl_status status;
    const char *chip;
    luaL_checkany(L, 1);
    struct tl_device *device = check_device(L, 1, &status);
    if (device)
        status = tl_profiler_probe(device, &chip);
    if (status != TL_OK)
        return tlua_refused(L, status);
    lua_pushstring(L, chip);
    return 1;
}

static int profiling(lua_State *L)
{
    lua_pushboolean(L, tl_profiler_running());
    return 1;
}

static int session_open(lua_State *L)
{
    static const char *const names[] = {"device", "metrics", "max_passes", "kernels", NULL};
    struct tl_profile_request request;
    enum tl_status status;
    tlua_keys_check(L, 1, "profiler", names);
    lua_settop(L, 1);
    memset(&request, 0, sizeof request);
    lua_Integer max_passes = tlua_field_integer(L, 1, "max_passes", 0);
    lua_Integer kernels = tlua_field_integer(L, 1, "kernels", 0);
    luaL_argcheck(L, max_passes >= 0 && max_passes <= INT_MAX, 1, "max_passes starts at 0");
    luaL_argcheck(L, kernels >= 0 && kernels <= 1000000, 1, "kernels is from 0 to 1000000");
    request.max_passes = (int)max_passes;
    request.max_kernels = (int)kernels;
    request.mode = kernels ? TL_PROFILE_KERNELS : TL_PROFILE_REGION;
    lua_getfield(L, 1, "metrics");
    luaL_argcheck(L, lua_istable(L, 2), 1, "metrics is a list of names");
    request.metrics = tlua_strings_check(L, 2, "metric", &request.num_metrics);
    lua_getfield(L, 1, "device");
    struct tl_device *device = check_device(L, -1, &status);
    /* The session keeps a copy of the names, by which results are keyed. */
    struct session_box *box = lua_newuserdatauv(L, sizeof *box, 1);
    box->profiler = NULL;
    box->device = device;
    luaL_setmetatable(L, SESSION_TYPE);
    tlua_strings_push(L, request.metrics, request.num_metrics);
    lua_setiuservalue(L, -2, 1);
    if (device)
        status = tl_profiler_open(device, &request, &box->profiler);
    return status == TL_OK ? 1 : tlua_refused(L, status);
}

/* Calls a Lua function from within a run. Its error has to wait until the pass has been ended. */
static enum tl_status call(struct run *run, int function)
{
    lua_pushvalue(run->L, function);
    if (lua_pcall(run->L, 0, 0, 0) == LUA_OK)
        return TL_OK;
    run->raised = true;
    return TL_FAIL(TL_ERR_ARGUMENT, "the profiled function raised an error");
}

static enum tl_status call_run(void *context)
{
    struct run *run = context;
    return call(run, run->run);
}

static enum tl_status call_flush(void *context)
{
    struct run *run = context;
    return call(run, run->flush);
}

/* Clean: lines that the flush left dirty would be written back on the region's account. */
static enum tl_status flush_cache(void *context)
{
    struct run *run = context;
    return run->device->api->flush_l2_clean(run->device->default_stream);
}

typedef enum tl_status flush_function(void *context);

/* What goes before every pass, by the argument at `index`. */
static flush_function *check_flush(lua_State *L, int index, const struct tl_device *device)
{
    if (!lua_toboolean(L, index))
        return NULL;
    if (lua_isfunction(L, index))
        return call_flush;
    luaL_argexpected(L, lua_isboolean(L, index), index, "function or boolean");
    if (!device->api->flush_l2_clean)
        luaL_error(L, "device %s has no L2 cache to flush", device->name);
    return flush_cache;
}

static void push_values(lua_State *L, const struct tl_profiler *profiler, int num_ranges)
{
    lua_getiuservalue(L, 1, 1);
    int names = lua_gettop(L), num_metrics = (int)luaL_len(L, names);
    lua_createtable(L, num_ranges, 0);
    for (int range = 0; range < num_ranges; range++) {
        lua_createtable(L, 0, num_metrics);
        for (int i = 0; i < num_metrics; i++) {
            double value = tl_profiler_value(profiler, range, i);
            if (isnan(value))
                continue;
            lua_rawgeti(L, names, i + 1);
            lua_pushnumber(L, value);
            lua_rawset(L, -3);
        }
        lua_rawseti(L, -2, range + 1);
    }
}

static int session_close(lua_State *L)
{
    struct session_box *box = luaL_checkudata(L, 1, SESSION_TYPE);
    struct tl_profiler *profiler = box->profiler;
    box->profiler = NULL;
    tl_profiler_close(profiler);
    return 0;
}

static int session_run(lua_State *L)
{
    struct session_box *box = check(L);
    struct run run = {.L = L, .run = 2, .flush = 3, .device = box->device};
    int num_ranges = 0;
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 3);
    luaL_checkstack(L, 16, "profiling");
    const struct tl_profile_region region = {
        .run = call_run, .flush = check_flush(L, 3, box->device), .context = &run};
    struct tl_profiler *profiler = box->profiler; /* the function may close the session */
    enum tl_status status = tl_profiler_run(profiler, &region, &num_ranges);
    if (run.raised) {
        session_close(L);
        return lua_error(L);
    }
    if (status == TL_OK && box->profiler != profiler)
        return luaL_error(L, "the profiling session was closed by the function that it profiled");
    if (status != TL_OK) {
        if (!tl_profiler_running()) /* else this is the inner of two: the outer one goes on */
            session_close(L);
        return tlua_raise(L, status);
    }
    push_values(L, profiler, num_ranges);
    return 1;
}

static int session_fields(lua_State *L)
{
    static const char *const names[] = {"passes", NULL};
    struct session_box *box = luaL_checkudata(L, 1, SESSION_TYPE);
    const char *name = lua_tostring(L, 2);
    if (!name || strcmp(name, "passes") != 0)
        return tlua_method(L, "profiling session", names);
    lua_pushinteger(L, box->profiler ? tl_profiler_passes(box->profiler) : 0);
    return 1;
}

/* --- tables --- */

static const luaL_Reg functions[] = {
    {"counters", counters},
    {"profiler", session_open},
    {"profiling", profiling},
    {NULL, NULL},
};

static const luaL_Reg session_methods[] = {
    {"run", session_run},
    {"close", session_close},
    {NULL, NULL},
};

static const luaL_Reg session_meta[] = {
    {"__gc", session_close},
    {"__close", session_close},
    {NULL, NULL},
};

void tlua_profiler_open(lua_State *L)
{
    tlua_metatable(L, SESSION_TYPE, session_meta, session_methods, session_fields);
    luaL_setfuncs(L, functions, 0);
}
