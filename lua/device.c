/* Devices, streams and events.
 *
 *   lab.device(name) -> device | nil, message, code     "cpu", "cuda", "cuda:1"
 *   lab.devices() -> list of {name =, model =}; a device that cannot be opened has `reason` instead
 *   device.name .model .arch .memory_bytes .multiprocessors
 *   device:stream() -> stream      device:event() -> event      (nil, message, code when refused)
 *   device:synchronize()           waits for the default stream
 *   stream:synchronize()           stream.device
 *   event:record([stream])         start:elapsed_us(stop) -> microseconds; waits for both
 * More methods of devices are in probe.c and graph.c.
 *
 * Devices live until the process ends, so a stream or an event may be collected after anything
 * else. One userdata stands for a device, so that devices compare with ==.
 */
#include "binding.h"

#include <string.h>

#define STREAM_TYPE "tilelab.stream"
#define EVENT_TYPE "tilelab.event"

struct device_box {
    struct tl_device *device;
};

struct stream_box {
    struct tl_stream *stream; /* NULL once closed */
    struct tl_device *device;
};

struct event_box {
    struct tl_event *event; /* NULL once closed */
    struct tl_device *device;
    bool recorded;
};

static const char devices_key; /* its address: the registry's table of device userdata */

/* --- accessors --- */

void tlua_device_push(lua_State *L, struct tl_device *device)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &devices_key);
    if (lua_rawgetp(L, -1, device) == LUA_TNIL) {
        lua_pop(L, 1);
        struct device_box *box = lua_newuserdatauv(L, sizeof *box, 0);
        box->device = device;
        luaL_setmetatable(L, TLUA_DEVICE);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, -3, device);
    }
    lua_remove(L, -2);
}

struct tl_device *tlua_device_check(lua_State *L, int index)
{
    struct device_box *box = luaL_checkudata(L, index, TLUA_DEVICE);
    return box->device;
}

struct tl_device *tlua_device_get(lua_State *L, int index, enum tl_status *status)
{
    *status = TL_OK;
    if (lua_type(L, index) != LUA_TSTRING)
        return tlua_device_check(L, index);
    struct tl_device *device = NULL;
    *status = tl_device_open(lua_tostring(L, index), &device);
    return *status == TL_OK ? device : NULL;
}

static struct stream_box *check_stream(lua_State *L, int index)
{
    struct stream_box *box = luaL_checkudata(L, index, STREAM_TYPE);
    luaL_argcheck(L, box->stream, index, "this stream is closed");
    return box;
}

static struct event_box *check_event(lua_State *L, int index)
{
    struct event_box *box = luaL_checkudata(L, index, EVENT_TYPE);
    luaL_argcheck(L, box->event, index, "this event is closed");
    return box;
}

struct tl_stream *tlua_stream_opt(lua_State *L, int index, const struct tl_device *device)
{
    if (lua_isnoneornil(L, index))
        return NULL;
    struct stream_box *box = check_stream(L, index);
    luaL_argcheck(L, box->device == device, index, "this stream belongs to another device");
    return box->stream;
}

/* --- functions --- */

static int device_open(lua_State *L)
{
    enum tl_status status;
    struct tl_device *device = tlua_device_get(L, 1, &status);
    if (!device)
        return tlua_refused(L, status);
    tlua_device_push(L, device);
    return 1;
}

static int device_list(lua_State *L)
{
    lua_newtable(L);
    const char *name;
    for (int i = 0; (name = tl_device_name_at(i)) != NULL; i++) {
        struct tl_device *device;
        lua_createtable(L, 0, 2);
        tlua_set_string(L, "name", name);
        bool open = tl_device_open(name, &device) == TL_OK;
        tlua_set_string(L, open ? "model" : "reason", open ? device->model : tl_error_message());
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

static int device_stream(lua_State *L)
{
    struct tl_device *device = tlua_device_check(L, 1);
    struct stream_box *box = lua_newuserdatauv(L, sizeof *box, 0);
    memset(box, 0, sizeof *box);
    luaL_setmetatable(L, STREAM_TYPE);
    box->device = device;
    enum tl_status status = device->api->stream_new(device, &box->stream);
    return status == TL_OK ? 1 : tlua_refused(L, status);
}

static int device_event(lua_State *L)
{
    struct tl_device *device = tlua_device_check(L, 1);
    struct event_box *box = lua_newuserdatauv(L, sizeof *box, 0);
    memset(box, 0, sizeof *box);
    luaL_setmetatable(L, EVENT_TYPE);
    box->device = device;
    enum tl_status status = device->api->event_new(device, &box->event);
    return status == TL_OK ? 1 : tlua_refused(L, status);
}

static int device_synchronize(lua_State *L)
{
    struct tl_device *device = tlua_device_check(L, 1);
    enum tl_status status = device->api->stream_sync(device->default_stream);
    return status == TL_OK ? 0 : tlua_raise(L, status);
}

static int device_fields(lua_State *L)
{
    static const char *const names[] = {"name", "model", "arch", "memory_bytes", "multiprocessors",
                                        NULL};
    const struct tl_device *device = tlua_device_check(L, 1);
    const char *name = lua_tostring(L, 2);
    if (name && strcmp(name, "name") == 0)
        lua_pushstring(L, device->name);
    else if (name && strcmp(name, "model") == 0)
        lua_pushstring(L, device->model);
    else if (name && strcmp(name, "arch") == 0)
        lua_pushinteger(L, device->arch);
    else if (name && strcmp(name, "memory_bytes") == 0)
        lua_pushinteger(L, (lua_Integer)device->memory_bytes);
    else if (name && strcmp(name, "multiprocessors") == 0)
        lua_pushinteger(L, device->multiprocessors);
    else
        return tlua_method(L, "device", names);
    return 1;
}

static int device_tostring(lua_State *L)
{
    lua_pushfstring(L, "device %s", tlua_device_check(L, 1)->name);
    return 1;
}

static int stream_synchronize(lua_State *L)
{
    struct stream_box *box = check_stream(L, 1);
    enum tl_status status = box->device->api->stream_sync(box->stream);
    return status == TL_OK ? 0 : tlua_raise(L, status);
}

static int stream_fields(lua_State *L)
{
    static const char *const names[] = {"device", NULL};
    struct stream_box *box = luaL_checkudata(L, 1, STREAM_TYPE);
    const char *name = lua_tostring(L, 2);
    if (!name || strcmp(name, "device") != 0)
        return tlua_method(L, "stream", names);
    tlua_device_push(L, box->device);
    return 1;
}

static int stream_close(lua_State *L)
{
    struct stream_box *box = luaL_checkudata(L, 1, STREAM_TYPE);
    if (box->stream)
        box->device->api->stream_free(box->stream);
    box->stream = NULL;
    return 0;
}

static int event_record(lua_State *L)
{
    struct event_box *box = check_event(L, 1);
    struct tl_stream *stream = tlua_stream_opt(L, 2, box->device);
    enum tl_status status = box->device->api->event_record(box->event, stream);
    if (status != TL_OK)
        return tlua_raise(L, status);
    box->recorded = true;
    lua_settop(L, 1);
    return 1;
}

static int event_elapsed_us(lua_State *L)
{
    struct event_box *start = check_event(L, 1), *stop = check_event(L, 2);
    double time_us;
    luaL_argcheck(L, start->device == stop->device, 2, "this event belongs to another device");
    luaL_argcheck(L, start->recorded, 1, "this event was never recorded");
    luaL_argcheck(L, stop->recorded, 2, "this event was never recorded");
    enum tl_status status = start->device->api->event_elapsed_us(start->event, stop->event,
                                                                 &time_us);
    if (status != TL_OK)
        return tlua_raise(L, status);
    lua_pushnumber(L, time_us);
    return 1;
}

static int event_close(lua_State *L)
{
    struct event_box *box = luaL_checkudata(L, 1, EVENT_TYPE);
    if (box->event)
        box->device->api->event_free(box->event);
    box->event = NULL;
    return 0;
}

/* --- tables --- */

static const luaL_Reg functions[] = {
    {"device", device_open},
    {"devices", device_list},
    {NULL, NULL},
};

static const luaL_Reg device_methods[] = {
    {"stream", device_stream},
    {"event", device_event},
    {"synchronize", device_synchronize},
    {NULL, NULL},
};

static const luaL_Reg device_meta[] = {
    {"__tostring", device_tostring},
    {NULL, NULL},
};

static const luaL_Reg stream_methods[] = {
    {"synchronize", stream_synchronize},
    {"close", stream_close},
    {NULL, NULL},
};

static const luaL_Reg stream_meta[] = {
    {"__gc", stream_close},
    {"__close", stream_close},
    {NULL, NULL},
};

static const luaL_Reg event_methods[] = {
    {"record", event_record},
    {"elapsed_us", event_elapsed_us},
    {"close", event_close},
    {NULL, NULL},
};

static const luaL_Reg event_meta[] = {
    {"__gc", event_close},
    {"__close", event_close},
    {NULL, NULL},
};

void tlua_device_open(lua_State *L)
{
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &devices_key);
    tlua_metatable(L, TLUA_DEVICE, device_meta, device_methods, device_fields);
    tlua_metatable(L, STREAM_TYPE, stream_meta, stream_methods, stream_fields);
    tlua_metatable(L, EVENT_TYPE, event_meta, event_methods, NULL);
    luaL_setfuncs(L, functions, 0);
}
