/* Kernel records and theoretical occupancy (core/activity.h, core/occupancy.h).
 *
 *   core.recording(device[, copies = false]) -> recording | nil, message, code      starts recording
 *       kernels, and copies where they are wanted: their name is "memcpy", their shape 0
 *   recording:finish() -> list of {name, symbol, duration_us, start_ns, grid = {x, y, z}, block =,
 *       cluster =, registers, static_shared_bytes, dynamic_shared_bytes, shared_carveout_bytes,
 *       local_bytes, max_active_clusters, stream, graph_node}; duration_us and start_ns are absent
 *       where the hardware gave no time stamps. Raises where records were lost
 *   recording:close()              stops and drops the records; fine after finish
 *   lab.occupancy{blocks =, threads =, registers =, shared_bytes = 0, barriers = 0, cluster = 1,
 *       max_active_clusters = 0, arch = 90, multiprocessors = 132} -> {percent, limiter, waves,
 *       blocks_per_multiprocessor, warps_per_multiprocessor, limits = {registers = blocks, ...}}
 *       | nil, message, code; limits that do not apply are absent
 */
#include "binding.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "core/activity.h"
#include "core/occupancy.h"

#define RECORDING_TYPE "tilelab.recording"

struct recording_box {
    bool on;
};

static void set_triple(lua_State *L, const char *name, const int value[3])
{
    lua_createtable(L, 3, 0);
    for (int i = 0; i < 3; i++) {
        lua_pushinteger(L, value[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, name);
}

/* --- kernel records --- */

static int recording_begin(lua_State *L)
{
    enum tl_status status;
    luaL_checkany(L, 1);
    bool copies = lua_toboolean(L, 2);
    struct tl_device *device = tlua_device_get(L, 1, &status);
    struct recording_box *box = lua_newuserdatauv(L, sizeof *box, 0);
    box->on = false;
    luaL_setmetatable(L, RECORDING_TYPE);
    if (device)
        status = tl_activity_begin(device, copies);
    if (status != TL_OK)
        return tlua_refused(L, status);
    box->on = true;
    return 1;
}

static void push_record(lua_State *L, const struct tl_kernel_record *record)
{
    lua_createtable(L, 0, 16);
    tlua_set_string(L, "name", record->name);
    tlua_set_string(L, "symbol", record->symbol);
    if (!isnan(record->duration_us)) {
        tlua_set_number(L, "duration_us", record->duration_us);
        tlua_set_integer(L, "start_ns", record->start_ns);
    }
    set_triple(L, "grid", record->grid);
    set_triple(L, "block", record->block);
    set_triple(L, "cluster", record->cluster);
    tlua_set_integer(L, "registers", record->registers);
    tlua_set_integer(L, "static_shared_bytes", record->static_shared_bytes);
    tlua_set_integer(L, "dynamic_shared_bytes", record->dynamic_shared_bytes);
    tlua_set_integer(L, "shared_carveout_bytes", record->shared_carveout_bytes);
    tlua_set_integer(L, "local_bytes", record->local_bytes);
    tlua_set_integer(L, "max_active_clusters", record->max_active_clusters);
    tlua_set_integer(L, "stream", record->stream);
    tlua_set_integer(L, "graph_node", (int64_t)record->graph_node);
}

static int recording_finish(lua_State *L)
{
    struct recording_box *box = luaL_checkudata(L, 1, RECORDING_TYPE);
    if (!box->on)
        return luaL_error(L, "this recording is finished");
    box->on = false;
    enum tl_status status = tl_activity_end();
    if (status != TL_OK)
        return tlua_raise(L, status);
    lua_newtable(L);
    const struct tl_kernel_record *record;
    for (int i = 0; (record = tl_activity_record_at(i)) != NULL; i++) {
        push_record(L, record);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

static int recording_close(lua_State *L)
{
    struct recording_box *box = luaL_checkudata(L, 1, RECORDING_TYPE);
    if (box->on)
        (void)tl_activity_end(); /* something else failed; that is what gets told */
    box->on = false;
    return 0;
}

/* --- occupancy --- */

static int field(lua_State *L, const char *name, lua_Integer fallback)
{
    lua_Integer value = tlua_field_integer(L, 1, name, fallback);
    if (value < INT_MIN || value > INT_MAX)
        return luaL_error(L, "%s is out of range", name);
    return (int)value;
}

static int occupancy(lua_State *L)
{
    static const char *const names[] = {
        "blocks",  "threads", "registers",           "shared_bytes",    "barriers",
        "cluster", "arch",    "max_active_clusters", "multiprocessors", NULL};
    struct tl_occupancy result;
    tlua_keys_check(L, 1, "occupancy", names);
    const struct tl_launch_shape shape = {
        .blocks = tlua_field_integer(L, 1, "blocks", 0),
        .threads = field(L, "threads", 0),
        .registers = field(L, "registers", 0),
        .shared_bytes = tlua_field_integer(L, 1, "shared_bytes", 0),
        .barriers = field(L, "barriers", 0),
        .cluster = field(L, "cluster", 1),
        .max_active_clusters = field(L, "max_active_clusters", 0),
    };
    enum tl_status status = tl_occupancy_compute(&result, field(L, "arch", 90),
                                                 field(L, "multiprocessors", 132), &shape);
    if (status != TL_OK)
        return tlua_refused(L, status);
    lua_createtable(L, 0, 6);
    tlua_set_number(L, "percent", result.percent);
    tlua_set_string(L, "limiter", result.limiter);
    tlua_set_number(L, "waves", result.waves);
    tlua_set_integer(L, "blocks_per_multiprocessor", result.blocks_per_multiprocessor);
    tlua_set_integer(L, "warps_per_multiprocessor", result.warps_per_multiprocessor);
    lua_createtable(L, 0, TL_NUM_LIMITS);
    for (int i = 0; i < TL_NUM_LIMITS; i++)
        if (result.limit[i] != INT_MAX)
            tlua_set_integer(L, tl_occupancy_limit_name((enum tl_occupancy_limit)i),
                             result.limit[i]);
    lua_setfield(L, -2, "limits");
    return 1;
}

/* --- tables --- */

static const luaL_Reg functions[] = {
    {"recording", recording_begin},
    {"occupancy", occupancy},
    {NULL, NULL},
};

static const luaL_Reg recording_methods[] = {
    {"finish", recording_finish},
    {"close", recording_close},
    {NULL, NULL},
};

static const luaL_Reg recording_meta[] = {
    {"__gc", recording_close},
    {"__close", recording_close},
    {NULL, NULL},
};

void tlua_activity_open(lua_State *L)
{
    tlua_metatable(L, RECORDING_TYPE, recording_meta, recording_methods, NULL);
    luaL_setfuncs(L, functions, 0);
}
