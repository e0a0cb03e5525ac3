/* Tensors: creation, fields, views, copies, files. Values go in and out in fill.c.
 *
 *   lab.tensor{device = "cpu", dtype = "fp32", shape = {2, 3}[, fill = number]}
 *       -> tensor | nil, message, code. Without `fill` every byte is 0xff, a NaN in float types.
 *   lab.load(path[, device]) -> tensor | nil, message, code           a NumPy .npy file
 *   t.dtype .shape (a fresh list) .rank .numel .bytes .device
 *   t:view(offset, shape)     shares memory, `offset` elements after the start
 *   t:rows(first, last)       shares memory; 1-based, inclusive; last = first - 1 is empty
 *   t:clone() -> tensor | nil, message, code
 *   t:copy(source) t:convert(source) -> t; same dtype, and any dtype
 *   t:save(path) -> true, checksum | nil, message, code      a checksum of its elements
 *   t:load(path) -> true, checksum | nil, message, code      a file of the same dtype and as many
 *                             elements; where it is refused, the tensor may hold a part of it
 *   t:close()                 gives the memory back before the collector would
 *
 * A userdata holds a counted reference, so views stay good when their source is collected.
 */
#include "binding.h"

#include <string.h>

#include "core/npy.h"

/* --- accessors --- */

struct tl_tensor *tlua_tensor_new(lua_State *L)
{
    struct tl_tensor *tensor = lua_newuserdatauv(L, sizeof *tensor, 0);
    memset(tensor, 0, sizeof *tensor);
    luaL_setmetatable(L, TLUA_TENSOR);
    return tensor;
}

struct tl_tensor *tlua_tensor_check(lua_State *L, int index)
{
    struct tl_tensor *tensor = luaL_checkudata(L, index, TLUA_TENSOR);
    luaL_argcheck(L, tensor->rank > 0, index, "this tensor is closed");
    return tensor;
}

enum tl_dtype tlua_dtype_check(lua_State *L, int index)
{
    enum tl_dtype dtype;
    const char *name = lua_tostring(L, index);
    if (!name)
        luaL_error(L, "dtype must be a name such as \"fp32\", not a %s", luaL_typename(L, index));
    else if (tl_dtype_parse(name, &dtype) != TL_OK)
        luaL_error(L, "%s", tl_error_message());
    else
        return dtype;
    return TL_NUM_DTYPES; /* not reached: luaL_error does not return */
}

int tlua_shape_check(lua_State *L, int index, int64_t shape[TL_MAX_RANK])
{
    int is_integer;
    index = lua_absindex(L, index);
    if (lua_type(L, index) == LUA_TNUMBER) {
        shape[0] = lua_tointegerx(L, index, &is_integer);
        if (!is_integer)
            luaL_error(L, "a size must be an integer, not %s", lua_tostring(L, index));
        return 1;
    }
    if (!lua_istable(L, index))
        luaL_error(L, "shape must be a list of sizes such as {2, 3}, not a %s",
                   luaL_typename(L, index));
    lua_Integer rank = luaL_len(L, index);
    if (rank < 1 || rank > TL_MAX_RANK)
        luaL_error(L, "a tensor has 1 to %d dimensions, not %I", TL_MAX_RANK, (LUAI_UACINT)rank);
    for (int i = 0; i < (int)rank; i++) {
        lua_geti(L, index, i + 1);
        shape[i] = lua_tointegerx(L, -1, &is_integer);
        if (!is_integer)
            luaL_error(L, "size %d of a shape must be an integer, not '%s'", i + 1,
                       luaL_tolstring(L, -1, NULL));
        lua_pop(L, 1);
    }
    return (int)rank;
}

enum tl_status tlua_tensor_allocate(lua_State *L, struct tl_tensor *tensor,
                                    struct tl_device *device, enum tl_dtype dtype, int rank,
                                    const int64_t *shape)
{
    enum tl_status status = tl_tensor_init(tensor, device, dtype, rank, shape);
    if (status == TL_ERR_MEMORY) {
        lua_gc(L, LUA_GCCOLLECT); /* tensors that nobody holds any more */
        status = tl_tensor_init(tensor, device, dtype, rank, shape);
    }
    if (status == TL_OK) {
        /* To the collector a tensor is a hundred bytes; tell it the truth. */
        size_t kilobytes = tl_tensor_bytes(tensor) / 1024;
        if (kilobytes > 0)
            lua_gc(L, LUA_GCSTEP, (int)(kilobytes < 1 << 20 ? kilobytes : 1 << 20));
    }
    return status;
}

/* The device of field `device`, "cpu" where it is absent. */
static struct tl_device *field_device(lua_State *L, int index, enum tl_status *status)
{
    if (lua_getfield(L, index, "device") == LUA_TNIL) {
        lua_pop(L, 1);
        lua_pushliteral(L, "cpu");
    }
    struct tl_device *device = tlua_device_get(L, -1, status);
    lua_pop(L, 1);
    return device;
}

/* --- functions --- */

static int tensor_create(lua_State *L)
{
    static const char *const names[] = {"device", "dtype", "shape", "fill", NULL};
    int64_t shape[TL_MAX_RANK];
    enum tl_status status;
    tlua_keys_check(L, 1, "tensor", names);
    lua_settop(L, 1);
    struct tl_device *device = field_device(L, 1, &status);
    if (!device)
        return tlua_refused(L, status);
    enum tl_dtype dtype = TL_FP32;
    if (lua_getfield(L, 1, "dtype") != LUA_TNIL)
        dtype = tlua_dtype_check(L, -1);
    lua_getfield(L, 1, "shape");
    int rank = tlua_shape_check(L, -1, shape);
    double fill = tlua_field_number(L, 1, "fill", 0);
    bool filled = lua_getfield(L, 1, "fill") != LUA_TNIL;
    if (filled)
        tlua_fill_check(L, -1, dtype);
    struct tl_tensor *tensor = tlua_tensor_new(L);
    status = tlua_tensor_allocate(L, tensor, device, dtype, rank, shape);
    if (status == TL_OK)
        status = filled ? tl_tensor_fill(tensor, fill) : tl_tensor_poison(tensor);
    return status == TL_OK ? 1 : tlua_refused(L, status);
}

static int tensor_load(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    enum tl_status status;
    lua_settop(L, 2);
    if (lua_isnil(L, 2)) {
        lua_pushliteral(L, "cpu");
        lua_replace(L, 2);
    }
    struct tl_device *device = tlua_device_get(L, 2, &status);
    if (!device)
        return tlua_refused(L, status);
    struct tl_tensor *tensor = tlua_tensor_new(L);
    status = tl_npy_read(tensor, device, path);
    return status == TL_OK ? 1 : tlua_refused(L, status);
}

static int finish_file(lua_State *L, enum tl_status status, const struct tl_checksum *sum)
{
    char text[TL_CHECKSUM_TEXT];
    if (status != TL_OK)
        return tlua_refused(L, status);
    tl_checksum_end(sum, text);
    lua_pushboolean(L, 1);
    lua_pushstring(L, text);
    return 2;
}

static int tensor_save(lua_State *L)
{
    const struct tl_tensor *tensor = tlua_tensor_check(L, 1);
    struct tl_checksum sum;
    return finish_file(L, tl_npy_write(tensor, luaL_checkstring(L, 2), &sum), &sum);
}

static int tensor_load_into(lua_State *L)
{
    struct tl_tensor *tensor = tlua_tensor_check(L, 1);
    struct tl_checksum sum;
    return finish_file(L, tl_npy_read_into(tensor, luaL_checkstring(L, 2), &sum), &sum);
}

static int tensor_view(lua_State *L)
{
    const struct tl_tensor *source = tlua_tensor_check(L, 1);
    int64_t shape[TL_MAX_RANK];
    lua_Integer offset = luaL_checkinteger(L, 2);
    int rank = tlua_shape_check(L, 3, shape);
    struct tl_tensor *view = tlua_tensor_new(L);
    enum tl_status status = tl_tensor_view(view, source, offset, rank, shape);
    return status == TL_OK ? 1 : tlua_raise(L, status);
}

static int tensor_rows(lua_State *L)
{
    const struct tl_tensor *source = tlua_tensor_check(L, 1);
    lua_Integer first = luaL_checkinteger(L, 2), last = luaL_checkinteger(L, 3);
    if (first < 1 || last < first - 1 || last > source->shape[0])
        return luaL_error(L, "rows %I to %I are not in a tensor of %I rows", (LUAI_UACINT)first,
                          (LUAI_UACINT)last, (LUAI_UACINT)source->shape[0]);
    struct tl_tensor *view = tlua_tensor_new(L);
    enum tl_status status = tl_tensor_rows(view, source, first - 1, last);
    return status == TL_OK ? 1 : tlua_raise(L, status);
}

static int tensor_clone(lua_State *L)
{
    const struct tl_tensor *source = tlua_tensor_check(L, 1);
    struct tl_tensor *copy = tlua_tensor_new(L);
    enum tl_status status = tlua_tensor_allocate(L, copy, source->device, source->dtype,
                                                 source->rank, source->shape);
    if (status == TL_OK)
        status = tl_tensor_copy(copy, source, NULL);
    return status == TL_OK ? 1 : tlua_refused(L, status);
}

static int tensor_copy(lua_State *L)
{
    struct tl_tensor *tensor = tlua_tensor_check(L, 1);
    const struct tl_tensor *source = tlua_tensor_check(L, 2);
    tlua_graph_keep(L, tensor);
    tlua_graph_keep(L, source);
    enum tl_status status = tl_tensor_copy(tensor, source, NULL);
    if (status != TL_OK)
        return tlua_raise(L, status);
    lua_settop(L, 1);
    return 1;
}

static int tensor_convert(lua_State *L)
{
    struct tl_tensor *tensor = tlua_tensor_check(L, 1);
    enum tl_status status = tl_tensor_convert(tensor, tlua_tensor_check(L, 2));
    if (status != TL_OK)
        return tlua_raise(L, status);
    lua_settop(L, 1);
    return 1;
}

static int tensor_close(lua_State *L)
{
    tl_tensor_done(luaL_checkudata(L, 1, TLUA_TENSOR));
    return 0;
}

static int tensor_fields(lua_State *L)
{
    static const char *const names[] = {"dtype", "shape", "rank", "numel", "bytes", "device", NULL};
    const char *name = lua_tostring(L, 2);
    int field = 0;
    while (names[field] && !(name && strcmp(names[field], name) == 0))
        field++;
    if (!names[field])
        return tlua_method(L, "tensor", names);
    const struct tl_tensor *tensor = tlua_tensor_check(L, 1);
    switch (field) {
    case 0: lua_pushstring(L, tl_dtype_name(tensor->dtype)); break;
    case 1:
        lua_createtable(L, tensor->rank, 0);
        for (int i = 0; i < tensor->rank; i++) {
            lua_pushinteger(L, tensor->shape[i]);
            lua_rawseti(L, -2, i + 1);
        }
        break;
    case 2: lua_pushinteger(L, tensor->rank); break;
    case 3: lua_pushinteger(L, tl_tensor_numel(tensor)); break;
    case 4: lua_pushinteger(L, (lua_Integer)tl_tensor_bytes(tensor)); break;
    default: tlua_device_push(L, tensor->device); break;
    }
    return 1;
}

static int tensor_tostring(lua_State *L)
{
    const struct tl_tensor *tensor = luaL_checkudata(L, 1, TLUA_TENSOR);
    char text[128];
    if (tensor->rank == 0)
        lua_pushliteral(L, "tensor (closed)");
    else
        lua_pushfstring(L, "tensor %s %s", tl_tensor_describe(tensor, text, sizeof text),
                        tensor->device->name);
    return 1;
}

/* --- tables --- */

static const luaL_Reg functions[] = {
    {"tensor", tensor_create},
    {"load", tensor_load},
    {NULL, NULL},
};

static const luaL_Reg methods[] = {
    {"view", tensor_view},
    {"rows", tensor_rows},
    {"clone", tensor_clone},
    {"copy", tensor_copy},
    {"convert", tensor_convert},
    {"save", tensor_save},
    {"load", tensor_load_into},
    {"close", tensor_close},
    {NULL, NULL},
};

static const luaL_Reg meta[] = {
    {"__gc", tensor_close},
    {"__close", tensor_close},
    {"__tostring", tensor_tostring},
    {NULL, NULL},
};

void tlua_tensor_open(lua_State *L)
{
    tlua_metatable(L, TLUA_TENSOR, meta, methods, tensor_fields);
    luaL_setfuncs(L, functions, 0);
}
