/* Values into tensors and out of them.
 *
 *   lab.tensor_from(device, dtype, values[, shape]) -> tensor | nil, message, code
 *       `values` is flat (then `shape` defaults to its length) or nested as deep as the tensor
 *   t:assign(values) -> t        flat or nested; converts, also onto other devices
 *   t:assign_bytes(text, width) -> t    i32; element i is the number of bytes i * width .. + width - 1,
 *       the first one high; width 1 or 2
 *   t:totable() -> flat list     integers from i32 and u8, floats from the rest
 *   t:get(i, j, ...) -> number   t:set(value, i, j, ...) -> t     1-based; host tensors only
 *   t:fill(number) t:poison() -> t
 *   t:normal{mean = 0, std = 1, seed = 0, sequence = 0} -> t
 *   t:uniform{low = 0, high = 1, seed = 0, sequence = 0} -> t     t:bits{seed = 0, sequence = 0}
 *
 * Values are checked before any is written: a number that the dtype cannot hold is an error with
 * its position, and leaves the tensor as it was.
 */
#include "binding.h"

#include <string.h>

struct nest {
    int depth;
    int64_t size[TL_MAX_RANK];
};

/* --- tables of values --- */

/* The sizes along the first elements of a nested table. */
static struct nest measure_nest(lua_State *L, int index)
{
    struct nest nest = {0, {0}};
    luaL_checktype(L, index, LUA_TTABLE);
    lua_pushvalue(L, index);
    while (lua_istable(L, -1)) {
        if (nest.depth == TL_MAX_RANK)
            luaL_error(L, "values are nested deeper than %d levels", TL_MAX_RANK);
        nest.size[nest.depth++] = luaL_len(L, -1);
        lua_geti(L, -1, 1);
        lua_remove(L, -2);
    }
    lua_pop(L, 1);
    return nest;
}

static bool is_integral(enum tl_dtype dtype)
{
    return dtype == TL_I32 || dtype == TL_U8;
}

/* Whether the dtype holds the number at `index`; float types round whatever they are given. */
static bool fits(lua_State *L, int index, enum tl_dtype dtype)
{
    if (!is_integral(dtype))
        return true;
    int is_integer;
    lua_Integer value = lua_tointegerx(L, index, &is_integer);
    lua_Integer low = dtype == TL_U8 ? 0 : INT32_MIN, high = dtype == TL_U8 ? 255 : INT32_MAX;
    return is_integer && value >= low && value <= high;
}

double tlua_fill_check(lua_State *L, int index, enum tl_dtype dtype)
{
    double value = luaL_checknumber(L, index);
    if (!fits(L, index, dtype))
        luaL_error(L, "fill: %s does not fit into %s", lua_tostring(L, index),
                   tl_dtype_name(dtype));
    return value;
}

/* The number on top of the stack as an element; raises where it is none. `position` is 1-based. */
static double check_element(lua_State *L, enum tl_dtype dtype, int64_t position)
{
    if (lua_type(L, -1) != LUA_TNUMBER)
        luaL_error(L, "element %I is a %s, not a number", (LUAI_UACINT)position,
                   luaL_typename(L, -1));
    if (!fits(L, -1, dtype))
        luaL_error(L, "element %I: %s does not fit into %s", (LUAI_UACINT)position,
                   lua_tostring(L, -1), tl_dtype_name(dtype));
    return lua_tonumber(L, -1);
}

/* Writes the values of the table on top of the stack, at `level` of the nest, from *position on. */
static void read_values(lua_State *L, const struct nest *nest, int level, struct tl_tensor *host,
                        int64_t *position)
{
    int64_t size = luaL_len(L, -1);
    if (size != nest->size[level])
        luaL_error(L, "values are ragged: a table of level %d holds %I, the first one %I",
                   level + 1, (LUAI_UACINT)size, (LUAI_UACINT)nest->size[level]);
    for (int64_t i = 1; i <= size; i++) {
        lua_geti(L, -1, i);
        if (level + 1 < nest->depth) {
            luaL_checkstack(L, 4, "nested values");
            if (!lua_istable(L, -1))
                luaL_error(L, "values mix tables and numbers at level %d", level + 1);
            read_values(L, nest, level + 1, host, position);
        } else {
            double value = check_element(L, host->dtype, *position + 1);
            tl_element_set(host->data, host->dtype, (*position)++, value);
        }
        lua_pop(L, 1);
    }
}

static int64_t multiply_sizes(lua_State *L, int rank, const int64_t *size)
{
    int64_t product = 1;
    for (int i = 0; i < rank; i++)
        if (__builtin_mul_overflow(product, size[i], &product))
            luaL_error(L, "%d dimensions with more than 2^63 elements", rank);
    return product;
}

/* Pushes a CPU tensor of that dtype and shape holding the values of the table at `index`. */
static enum tl_status push_values(lua_State *L, int index, enum tl_dtype dtype, int rank,
                                  const int64_t *shape)
{
    struct tl_device *cpu;
    struct nest nest = measure_nest(L, index);
    int64_t numel = multiply_sizes(L, rank, shape), position = 0;
    int64_t count = multiply_sizes(L, nest.depth, nest.size);
    if (count != numel)
        luaL_error(L, "%I values for a tensor of %I elements", (LUAI_UACINT)count,
                   (LUAI_UACINT)numel);
    if (dtype == TL_E4M3 || dtype == TL_E8M0)
        return TL_FAIL(TL_ERR_UNSUPPORTED, "numbers cannot be converted to %s",
                       tl_dtype_name(dtype));
    struct tl_tensor *host = tlua_tensor_new(L);
    TL_TRY(tl_device_open("cpu", &cpu));
    TL_TRY(tlua_tensor_allocate(L, host, cpu, dtype, rank, shape));
    lua_pushvalue(L, index);
    read_values(L, &nest, 0, host, &position);
    lua_pop(L, 1);
    return TL_OK;
}

/* A tensor's elements in host memory: its own, or those of a copy that is pushed. */
static const struct tl_tensor *push_host(lua_State *L, const struct tl_tensor *tensor)
{
    struct tl_device *cpu;
    if (tensor->device->arch == 0) {
        lua_pushnil(L);
        return tensor;
    }
    struct tl_tensor *host = tlua_tensor_new(L);
    enum tl_status status = tl_device_open("cpu", &cpu);
    if (status == TL_OK)
        status = tlua_tensor_allocate(L, host, cpu, tensor->dtype, tensor->rank, tensor->shape);
    if (status == TL_OK)
        status = tl_tensor_copy(host, tensor, NULL);
    if (status != TL_OK)
        tlua_raise(L, status);
    return host;
}

static void push_element(lua_State *L, const struct tl_tensor *host, int64_t position)
{
    double value = tl_element_get(host->data, host->dtype, position);
    if (is_integral(host->dtype))
        lua_pushinteger(L, (lua_Integer)value);
    else
        lua_pushnumber(L, value);
}

static void check_readable(lua_State *L, const struct tl_tensor *tensor)
{
    if (tensor->dtype == TL_E4M3 || tensor->dtype == TL_E8M0)
        luaL_error(L, "elements of %s have no value as numbers", tl_dtype_name(tensor->dtype));
}

/* --- functions --- */

static int tensor_from(lua_State *L)
{
    int64_t shape[TL_MAX_RANK];
    enum tl_status status;
    int rank;
    lua_settop(L, 4);
    struct tl_device *device = tlua_device_get(L, 1, &status);
    if (!device)
        return tlua_refused(L, status);
    enum tl_dtype dtype = tlua_dtype_check(L, 2);
    if (lua_isnil(L, 4)) {
        struct nest nest = measure_nest(L, 3);
        rank = nest.depth;
        memcpy(shape, nest.size, sizeof shape);
    } else {
        rank = tlua_shape_check(L, 4, shape);
    }
    status = push_values(L, 3, dtype, rank, shape);
    if (status != TL_OK)
        return tlua_refused(L, status);
    const struct tl_tensor *host = lua_touserdata(L, -1);
    if (host->device == device)
        return 1;
    struct tl_tensor *tensor = tlua_tensor_new(L);
    status = tlua_tensor_allocate(L, tensor, device, dtype, rank, shape);
    if (status == TL_OK)
        status = tl_tensor_copy(tensor, host, NULL);
    return status == TL_OK ? 1 : tlua_refused(L, status);
}

static int tensor_assign(lua_State *L)
{
    struct tl_tensor *tensor = tlua_tensor_check(L, 1);
    lua_settop(L, 2);
    enum tl_status status = push_values(L, 2, tensor->dtype, tensor->rank, tensor->shape);
    if (status == TL_OK)
        status = tl_tensor_copy(tensor, lua_touserdata(L, -1), NULL);
    if (status != TL_OK)
        return tlua_raise(L, status);
    lua_settop(L, 1);
    return 1;
}

static int tensor_assign_bytes(lua_State *L)
{
    struct tl_tensor *tensor = tlua_tensor_check(L, 1);
    struct tl_device *cpu;
    size_t length;
    const unsigned char *text = (const unsigned char *)luaL_checklstring(L, 2, &length);
    lua_Integer width = luaL_checkinteger(L, 3);
    int64_t numel = tl_tensor_numel(tensor);
    luaL_argcheck(L, tensor->dtype == TL_I32, 1, "an i32 tensor is expected");
    luaL_argcheck(L, width == 1 || width == 2, 3, "expected 1 or 2");
    if ((int64_t)length != numel * width)
        return luaL_error(L, "%I bytes for a tensor of %I elements, %I bytes each",
                          (LUAI_UACINT)length, (LUAI_UACINT)numel, (LUAI_UACINT)width);
    struct tl_tensor *host = tlua_tensor_new(L);
    enum tl_status status = tl_device_open("cpu", &cpu);
    if (status == TL_OK)
        status = tlua_tensor_allocate(L, host, cpu, TL_I32, 1, &numel);
    int32_t *value = host->data;
    for (int64_t i = 0; i < numel && status == TL_OK; i++)
        value[i] = width == 1 ? text[i] : text[2 * i] << 8 | text[2 * i + 1];
    if (status == TL_OK)
        status = tl_tensor_copy(tensor, host, NULL);
    if (status != TL_OK)
        return tlua_raise(L, status);
    lua_settop(L, 1);
    return 1;
}

static int tensor_totable(lua_State *L)
{
    const struct tl_tensor *tensor = tlua_tensor_check(L, 1);
    int64_t numel = tl_tensor_numel(tensor);
    check_readable(L, tensor);
    const struct tl_tensor *host = push_host(L, tensor);
    lua_createtable(L, numel < INT32_MAX ? (int)numel : 0, 0);
    for (int64_t i = 0; i < numel; i++) {
        push_element(L, host, i);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* The element that the indices from `first` on name; raises for a wrong count, a bad index or a
 * tensor in other memory than the host's. */
static int64_t check_position(lua_State *L, const struct tl_tensor *tensor, int first)
{
    int64_t position = 0;
    check_readable(L, tensor);
    if (tensor->device->arch != 0)
        luaL_error(L, "elements are read and written in host memory; this tensor is on %s: copy it "
                   "to a tensor on the cpu first", tensor->device->name);
    if (lua_gettop(L) - first + 1 != tensor->rank)
        luaL_error(L, "a tensor of %d dimensions takes %d indices, not %d", tensor->rank,
                   tensor->rank, lua_gettop(L) - first + 1);
    for (int i = 0; i < tensor->rank; i++) {
        lua_Integer index = luaL_checkinteger(L, first + i);
        if (index < 1 || index > tensor->shape[i])
            luaL_error(L, "index %d is %I, outside 1 to %I", i + 1, (LUAI_UACINT)index,
                       (LUAI_UACINT)tensor->shape[i]);
        position += (index - 1) * tensor->stride[i];
    }
    return position;
}

static int tensor_get(lua_State *L)
{
    const struct tl_tensor *tensor = tlua_tensor_check(L, 1);
    push_element(L, tensor, check_position(L, tensor, 2));
    return 1;
}

static int tensor_set(lua_State *L)
{
    struct tl_tensor *tensor = tlua_tensor_check(L, 1);
    luaL_checknumber(L, 2);
    int64_t position = check_position(L, tensor, 3);
    lua_pushvalue(L, 2);
    tl_element_set(tensor->data, tensor->dtype, position,
                   check_element(L, tensor->dtype, position + 1));
    lua_settop(L, 1);
    return 1;
}

static int finish(lua_State *L, enum tl_status status)
{
    if (status != TL_OK)
        return tlua_raise(L, status);
    lua_settop(L, 1);
    return 1;
}

static int tensor_fill(lua_State *L)
{
    struct tl_tensor *tensor = tlua_tensor_check(L, 1);
    double value = tlua_fill_check(L, 2, tensor->dtype);
    tlua_graph_keep(L, tensor);
    return finish(L, tl_tensor_fill(tensor, value));
}

static int tensor_poison(lua_State *L)
{
    struct tl_tensor *tensor = tlua_tensor_check(L, 1);
    tlua_graph_keep(L, tensor);
    return finish(L, tl_tensor_poison(tensor));
}

static int fill_random(lua_State *L, enum tl_distribution distribution, const char *const *names,
                       double low, double high)
{
    struct tl_tensor *tensor = tlua_tensor_check(L, 1);
    lua_settop(L, 2);
    if (lua_isnil(L, 2)) {
        lua_newtable(L);
        lua_replace(L, 2);
    }
    tlua_keys_check(L, 2, "distribution", names);
    uint64_t seed = (uint64_t)tlua_field_integer(L, 2, "seed", 0);
    uint64_t sequence = (uint64_t)tlua_field_integer(L, 2, "sequence", 0);
    if (distribution != TL_BITS) {
        low = tlua_field_number(L, 2, names[2], low);
        high = tlua_field_number(L, 2, names[3], high);
    }
    return finish(L, tl_tensor_random(tensor, distribution, low, high, seed, sequence));
}

static int tensor_normal(lua_State *L)
{
    static const char *const names[] = {"seed", "sequence", "mean", "std", NULL};
    return fill_random(L, TL_NORMAL, names, 0, 1);
}

static int tensor_uniform(lua_State *L)
{
    static const char *const names[] = {"seed", "sequence", "low", "high", NULL};
    return fill_random(L, TL_UNIFORM, names, 0, 1);
}

static int tensor_bits(lua_State *L)
{
    static const char *const names[] = {"seed", "sequence", NULL};
    return fill_random(L, TL_BITS, names, 0, 0);
}

/* --- tables --- */

static const luaL_Reg functions[] = {
    {"tensor_from", tensor_from},
    {NULL, NULL},
};

static const luaL_Reg methods[] = {
    {"assign", tensor_assign},
    {"assign_bytes", tensor_assign_bytes},
    {"totable", tensor_totable},
    {"get", tensor_get},
    {"set", tensor_set},
    {"fill", tensor_fill},
    {"poison", tensor_poison},
    {"normal", tensor_normal},
    {"uniform", tensor_uniform},
    {"bits", tensor_bits},
    {NULL, NULL},
};

void tlua_fill_open(lua_State *L)
{
    tlua_metatable_extend(L, TLUA_TENSOR, methods);
    luaL_setfuncs(L, functions, 0);
}
