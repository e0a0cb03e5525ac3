/* What a measurement needs of a device, and what the device tells about itself.
 *
 *   device:memory() -> {free_bytes, total_bytes, used_bytes, reserved_bytes}
 *   device:state() -> {power_w, temperature_c, sm_clock_mhz, throttle = {"power_cap", ...},
 *       slowdown = whether the chip protects itself}; fields that it does not report are absent
 *   device:details() -> {driver_version = "580.159.04", gpu_uuid = ..., ...}; empty on the CPU
 *   device:flush_l2() device:flush_l2_clean()    on the default stream; leaves dirty or clean lines
 *   device:clock_mark(i)                 notes the SM clock, 1 <= i <= 16
 *   device:clock_mhz(i, j) -> MHz between two marks; waits for the default stream
 *
 * memory, state and details return nil, message, code where there is no such thing; the others,
 * like all that is called for its effect, raise.
 */
#include "binding.h"

#include <math.h>

enum { MAX_DETAILS = 32 };

static enum tl_status lacking(const struct tl_device *device, const char *what)
{
    return TL_FAIL(TL_ERR_UNSUPPORTED, "%s (%s) has no %s", device->name, device->model, what);
}

static int device_memory(lua_State *L)
{
    struct tl_device *device = tlua_device_check(L, 1);
    struct tl_memory memory;
    enum tl_status status = device->api->memory ? device->api->memory(device, &memory)
                                                : lacking(device, "account of its memory");
    if (status != TL_OK)
        return tlua_refused(L, status);
    lua_createtable(L, 0, 4);
    tlua_set_integer(L, "free_bytes", (int64_t)memory.free_bytes);
    tlua_set_integer(L, "total_bytes", (int64_t)memory.total_bytes);
    tlua_set_integer(L, "used_bytes", (int64_t)memory.used_bytes);
    tlua_set_integer(L, "reserved_bytes", (int64_t)memory.reserved_bytes);
    return 1;
}

static void set_known(lua_State *L, const char *name, double value)
{
    if (!isnan(value))
        tlua_set_number(L, name, value);
}

static int device_state(lua_State *L)
{
    struct tl_device *device = tlua_device_check(L, 1);
    struct tl_device_state state;
    enum tl_status status = device->api->state ? device->api->state(device, &state)
                                               : lacking(device, "sensors that tilelab reads");
    if (status != TL_OK)
        return tlua_refused(L, status);
    lua_createtable(L, 0, 5);
    set_known(L, "power_w", state.power_w);
    set_known(L, "temperature_c", state.temperature_c);
    set_known(L, "sm_clock_mhz", state.sm_clock_mhz);
    tlua_set_boolean(L, "slowdown", (state.throttle & TL_THROTTLE_SLOWDOWN) != 0);
    lua_newtable(L);
    for (int bit = 0, count = 0; tl_throttle_name(bit); bit++) {
        if (state.throttle >> bit & 1) {
            lua_pushstring(L, tl_throttle_name(bit));
            lua_rawseti(L, -2, ++count);
        }
    }
    lua_setfield(L, -2, "throttle");
    return 1;
}

static int device_details(lua_State *L)
{
    struct tl_device *device = tlua_device_check(L, 1);
    struct tl_device_detail details[MAX_DETAILS];
    int count = device->api->details ? device->api->details(device, details, MAX_DETAILS) : 0;
    lua_createtable(L, 0, count);
    for (int i = 0; i < count; i++) {
        tlua_set_string(L, details[i].key, details[i].value);
    }
    return 1;
}

static int flush(lua_State *L, struct tl_device *device,
                 enum tl_status (*function)(struct tl_stream *))
{
    enum tl_status status = function ? function(device->default_stream)
                                     : lacking(device, "L2 cache that tilelab can flush");
    return status == TL_OK ? 0 : tlua_raise(L, status);
}

static int device_flush_l2(lua_State *L)
{
    struct tl_device *device = tlua_device_check(L, 1);
    return flush(L, device, device->api->flush_l2);
}

static int device_flush_l2_clean(lua_State *L)
{
    struct tl_device *device = tlua_device_check(L, 1);
    return flush(L, device, device->api->flush_l2_clean);
}

static int check_slot(lua_State *L, int index)
{
    lua_Integer slot = luaL_checkinteger(L, index);
    luaL_argcheck(L, slot >= 1 && slot <= TL_CLOCK_SLOTS, index, "clock marks are 1 to 16");
    return (int)slot - 1;
}

static int device_clock_mark(lua_State *L)
{
    struct tl_device *device = tlua_device_check(L, 1);
    int slot = check_slot(L, 2);
    enum tl_status status = device->api->clock_mark
                                ? device->api->clock_mark(device->default_stream, slot)
                                : lacking(device, "SM clock");
    return status == TL_OK ? 0 : tlua_raise(L, status);
}

static int device_clock_mhz(lua_State *L)
{
    struct tl_device *device = tlua_device_check(L, 1);
    struct tl_stream *stream = device->default_stream;
    int first = check_slot(L, 2), second = check_slot(L, 3);
    double mhz;
    enum tl_status status = device->api->clock_mhz
                                ? device->api->clock_mhz(stream, first, second, &mhz)
                                : lacking(device, "SM clock");
    if (status != TL_OK)
        return tlua_raise(L, status);
    lua_pushnumber(L, mhz);
    return 1;
}

static const luaL_Reg methods[] = {
    {"memory", device_memory},
    {"state", device_state},
    {"details", device_details},
    {"flush_l2", device_flush_l2},
    {"flush_l2_clean", device_flush_l2_clean},
    {"clock_mark", device_clock_mark},
    {"clock_mhz", device_clock_mhz},
    {NULL, NULL},
};

void tlua_probe_open(lua_State *L)
{
    tlua_metatable_extend(L, TLUA_DEVICE, methods);
}
