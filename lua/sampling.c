/* Metrics as a series over time (core/pmsampling.h); lab.timeline of lua/tilelab/profile.lua is
 * what scripts use.
 *
 *   core.sampler{device =, metrics = {names}, interval_us = 20, max_samples = 10000} -> sampler
 *       | nil, message, code
 *   sampler:run(fn) -> {start_ns = {...}, end_ns = {...}, values = {metric = {...}}}; a value
 *       without a denominator is NaN. Raises whatever fails; the sampler is closed then
 *   sampler:close()
 */
#include "binding.h"

#include <limits.h>
#include <string.h>

#include "core/pmsampling.h"

#define SAMPLER_TYPE "tilelab.sampler"

struct sampler_box {
    struct tl_sampling *sampling; /* NULL once closed */
    bool running;
};

struct run {
    lua_State *L;
    bool raised; /* the error value is on top of the stack */
};

static int sampler_open(lua_State *L)
{
    static const char *const names[] = {"device", "metrics", "interval_us", "max_samples", NULL};
    struct tl_sampling_request request;
    enum tl_status status;
    tlua_keys_check(L, 1, "sampler", names);
    lua_settop(L, 1);
    memset(&request, 0, sizeof request);
    lua_Integer max_samples = tlua_field_integer(L, 1, "max_samples", 10000);
    luaL_argcheck(L, max_samples >= 2 && max_samples <= 10000000, 1,
                  "max_samples is from 2 to 10000000");
    request.max_samples = (int)max_samples;
    request.interval_us = tlua_field_number(L, 1, "interval_us", 20);
    lua_getfield(L, 1, "metrics");
    luaL_argcheck(L, lua_istable(L, 2), 1, "metrics is a list of names");
    request.metrics = tlua_strings_check(L, 2, "metric", &request.num_metrics);
    luaL_argcheck(L, lua_getfield(L, 1, "device") != LUA_TNIL, 1, "device is missing");
    struct tl_device *device = tlua_device_get(L, -1, &status);
    struct sampler_box *box = lua_newuserdatauv(L, sizeof *box, 1);
    memset(box, 0, sizeof *box);
    luaL_setmetatable(L, SAMPLER_TYPE);
    tlua_strings_push(L, request.metrics, request.num_metrics);
    lua_setiuservalue(L, -2, 1);
    if (device)
        status = tl_sampling_open(device, &request, &box->sampling);
    return status == TL_OK ? 1 : tlua_refused(L, status);
}

static enum tl_status call(void *context)
{
    struct run *run = context;
    lua_pushvalue(run->L, 2);
    if (lua_pcall(run->L, 0, 0, 0) == LUA_OK)
        return TL_OK;
    run->raised = true;
    return TL_FAIL(TL_ERR_ARGUMENT, "the sampled function raised an error");
}

static void push_bounds(lua_State *L, const struct tl_sampling *sampling, int num_samples)
{
    int64_t start_ns, end_ns;
    lua_createtable(L, num_samples, 0);
    lua_createtable(L, num_samples, 0);
    for (int i = 0; i < num_samples; i++) {
        tl_sampling_time(sampling, i, &start_ns, &end_ns);
        lua_pushinteger(L, end_ns);
        lua_rawseti(L, -2, i + 1);
        lua_pushinteger(L, start_ns);
        lua_rawseti(L, -3, i + 1);
    }
    lua_setfield(L, -3, "end_ns");
    lua_setfield(L, -2, "start_ns");
}

static void push_values(lua_State *L, const struct tl_sampling *sampling, int num_samples)
{
    lua_getiuservalue(L, 1, 1);
    int names = lua_gettop(L), num_metrics = (int)luaL_len(L, names);
    lua_createtable(L, 0, num_metrics);
    for (int k = 0; k < num_metrics; k++) {
        lua_rawgeti(L, names, k + 1);
        lua_createtable(L, num_samples, 0);
        for (int i = 0; i < num_samples; i++) {
            lua_pushnumber(L, tl_sampling_value(sampling, i, k));
            lua_rawseti(L, -2, i + 1);
        }
        lua_rawset(L, -3);
    }
    lua_remove(L, names);
    lua_setfield(L, -2, "values");
}

static int sampler_close(lua_State *L)
{
    struct sampler_box *box = luaL_checkudata(L, 1, SAMPLER_TYPE);
    if (box->running)
        return luaL_error(L, "a sampler cannot be closed by the function that it samples");
    tl_sampling_close(box->sampling);
    box->sampling = NULL;
    return 0;
}

static int sampler_run(lua_State *L)
{
    struct sampler_box *box = luaL_checkudata(L, 1, SAMPLER_TYPE);
    struct run run = {.L = L};
    int num_samples = 0;
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    luaL_checkstack(L, 16, "sampling");
    if (!box->sampling || box->running)
        return luaL_error(L, box->running ? "this sampler is running" : "this sampler is closed");
    const struct tl_profile_region region = {.run = call, .context = &run};
    box->running = true;
    enum tl_status status = tl_sampling_run(box->sampling, &region, &num_samples);
    box->running = false;
    if (status != TL_OK) {
        sampler_close(L);
        return run.raised ? lua_error(L) : tlua_raise(L, status);
    }
    lua_createtable(L, 0, 3);
    push_bounds(L, box->sampling, num_samples);
    push_values(L, box->sampling, num_samples);
    return 1;
}

static const luaL_Reg functions[] = {
    {"sampler", sampler_open},
    {NULL, NULL},
};

static const luaL_Reg sampler_methods[] = {
    {"run", sampler_run},
    {"close", sampler_close},
    {NULL, NULL},
};

static const luaL_Reg sampler_meta[] = {
    {"__gc", sampler_close},
    {"__close", sampler_close},
    {NULL, NULL},
};

void tlua_sampling_open(lua_State *L)
{
    tlua_metatable(L, SAMPLER_TYPE, sampler_meta, sampler_methods, NULL);
    luaL_setfuncs(L, functions, 0);
}
