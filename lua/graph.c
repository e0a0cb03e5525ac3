/* Graphs: work that is recorded once and replayed with one call.
 *
 *   device:graph(function) -> graph | nil, message, code
 *       calls the function; what it launches, fills and copies on the device's default stream is
 *       recorded and not run. An error of the function drops the graph and comes through; recording
 *       nothing is an error. Tensors must be allocated, and plans made and tuned, before.
 *   graph:launch([stream])    runs all of it in order; raises what fails
 *   graph.device              graph:close()
 *
 * A graph holds the memory of the tensors that its work uses. Their contents may change between
 * launches.
 */
#include "binding.h"

#include <string.h>

#define GRAPH_TYPE "tilelab.graph"
enum { KEPT = 1 }; /* the user value that lists tensors */

struct graph_box {
    struct tl_graph *graph; /* NULL until it is captured, and once closed */
    struct tl_device *device;
};

static struct tl_device *capturing; /* NULL outside of device:graph */
static const char kept_key;         /* its address: the registry's list of the graph's tensors */

/* --- accessors --- */

bool tlua_graph_captures(const struct tl_device *device)
{
    return capturing == device;
}

void tlua_graph_keep(lua_State *L, const struct tl_tensor *tensor)
{
    if (!capturing || tensor->device != capturing)
        return;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &kept_key);
    struct tl_tensor *view = tlua_tensor_new(L);
    enum tl_status status = tl_tensor_view(view, tensor, 0, tensor->rank, tensor->shape);
    if (status != TL_OK)
        tlua_raise(L, status);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 1);
}

static struct graph_box *check(lua_State *L)
{
    struct graph_box *box = luaL_checkudata(L, 1, GRAPH_TYPE);
    luaL_argcheck(L, box->graph, 1, "this graph is closed");
    return box;
}

/* --- functions --- */

/* Pushes the list for tensors and makes it that of the box at `index`. */
static void push_kept(lua_State *L, int index)
{
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, index, KEPT);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &kept_key);
}

static int device_graph(lua_State *L)
{
    struct tl_device *device = tlua_device_check(L, 1);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    if (!device->api->capture_begin)
        return tlua_refused(L, TL_FAIL(TL_ERR_UNSUPPORTED, "%s has no graphs; they need a GPU",
                                       device->name));
    if (capturing)
        return luaL_error(L, "a graph is being captured already");
    struct graph_box *box = lua_newuserdatauv(L, sizeof *box, 1);
    memset(box, 0, sizeof *box);
    luaL_setmetatable(L, GRAPH_TYPE);
    box->device = device;
    push_kept(L, 3);
    lua_pushvalue(L, 2);
    enum tl_status status = device->api->capture_begin(device->default_stream);
    if (status != TL_OK)
        return tlua_refused(L, status);
    capturing = device;
    int failed = lua_pcall(L, 0, 0, 0);
    capturing = NULL;
    status = device->api->capture_end(device->default_stream, failed ? NULL : &box->graph);
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &kept_key);
    if (failed)
        return lua_error(L);
    if (status != TL_OK)
        return tlua_refused(L, status);
    lua_settop(L, 3);
    return 1;
}

static int graph_launch(lua_State *L)
{
    const struct graph_box *box = check(L);
    struct tl_stream *stream = tlua_stream_opt(L, 2, box->device);
    tlua_interrupt_check(L);
    enum tl_status status = box->device->api->graph_launch(box->graph, stream);
    return status == TL_OK ? 0 : tlua_raise(L, status);
}

static int graph_close(lua_State *L)
{
    struct graph_box *box = luaL_checkudata(L, 1, GRAPH_TYPE);
    if (box->graph) {
        box->device->api->graph_free(box->graph);
        lua_pushnil(L);
        lua_setiuservalue(L, 1, KEPT);
    }
    box->graph = NULL;
    return 0;
}

static int graph_fields(lua_State *L)
{
    static const char *const names[] = {"device", NULL};
    struct graph_box *box = luaL_checkudata(L, 1, GRAPH_TYPE);
    const char *name = lua_tostring(L, 2);
    if (!name || strcmp(name, "device") != 0)
        return tlua_method(L, "graph", names);
    tlua_device_push(L, box->device);
    return 1;
}

/* --- tables --- */

static const luaL_Reg device_methods[] = {
    {"graph", device_graph},
    {NULL, NULL},
};

static const luaL_Reg methods[] = {
    {"launch", graph_launch},
    {"close", graph_close},
    {NULL, NULL},
};

static const luaL_Reg meta[] = {
    {"__gc", graph_close},
    {"__close", graph_close},
    {NULL, NULL},
};

void tlua_graph_open(lua_State *L)
{
    tlua_metatable_extend(L, TLUA_DEVICE, device_methods);
    tlua_metatable(L, GRAPH_TYPE, meta, methods, graph_fields);
}
