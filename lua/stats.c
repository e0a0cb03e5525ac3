/* Statistics and comparison.
 *
 *   lab.stats(list) -> {n, min, q1, median, q3, max, mean, relative_spread, median_lo, median_hi,
 *       coverage}; raises for an empty list or a value that is not finite (core/stats.h)
 *   lab.compare(value, reference[, {absolute = 0, relative = 0, scaled = 0, scale = tensor}])
 *       -> {pass, count, nonfinite, mismatched_bits, violations, relative_frobenius, worst_ratio,
 *       worst_index, worst_coord, worst_value, worst_reference}; positions are 1-based and absent
 *       where there is nothing to compare (core/compare.h)
 *   lab.compare_groups(value, reference, group_offsets[, bound]) -> list of the same, one for each
 *       group of rows; group_offsets is an i32 tensor [num_groups + 1], positions are those of the
 *       whole tensor
 */
#include "binding.h"

#include "core/compare.h"
#include "core/stats.h"

static int stats(lua_State *L)
{
    struct tl_stats result;
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_Integer n = luaL_len(L, 1);
    luaL_argcheck(L, n >= 0 && n <= INT32_MAX, 1, "too many samples");
    double *samples = lua_newuserdatauv(L, ((size_t)n + 1) * sizeof *samples, 0);
    for (lua_Integer i = 1; i <= n; i++) {
        if (lua_geti(L, 1, i) != LUA_TNUMBER)
            return luaL_error(L, "sample %I is a %s, not a number", (LUAI_UACINT)i,
                              luaL_typename(L, -1));
        samples[i - 1] = lua_tonumber(L, -1);
        lua_pop(L, 1);
    }
    enum tl_status status = tl_stats_compute(&result, samples, (size_t)n);
    if (status != TL_OK)
        return tlua_raise(L, status);
    lua_createtable(L, 0, 11);
    tlua_set_integer(L, "n", (int64_t)result.n);
    tlua_set_number(L, "min", result.min);
    tlua_set_number(L, "q1", result.q1);
    tlua_set_number(L, "median", result.median);
    tlua_set_number(L, "q3", result.q3);
    tlua_set_number(L, "max", result.max);
    tlua_set_number(L, "mean", result.mean);
    tlua_set_number(L, "relative_spread", result.relative_spread);
    tlua_set_number(L, "median_lo", result.median_lo);
    tlua_set_number(L, "median_hi", result.median_hi);
    tlua_set_number(L, "coverage", result.coverage);
    return 1;
}

static void push_comparison(lua_State *L, const struct tl_comparison *result, int rank)
{
    lua_createtable(L, 0, 11);
    tlua_set_boolean(L, "pass", result->pass);
    tlua_set_integer(L, "count", result->count);
    tlua_set_integer(L, "nonfinite", result->nonfinite);
    tlua_set_integer(L, "mismatched_bits", result->mismatched_bits);
    tlua_set_integer(L, "violations", result->violations);
    tlua_set_number(L, "relative_frobenius", result->relative_frobenius);
    tlua_set_number(L, "worst_ratio", result->worst_ratio);
    if (result->worst_index < 0)
        return;
    tlua_set_integer(L, "worst_index", result->worst_index + 1);
    tlua_set_number(L, "worst_value", result->worst_value);
    tlua_set_number(L, "worst_reference", result->worst_reference);
    lua_createtable(L, rank, 0);
    for (int i = 0; i < rank; i++) {
        lua_pushinteger(L, result->worst_coord[i] + 1);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "worst_coord");
}

/* The bound at `index`; nil is a bound of 0. */
static struct tl_bound bound_check(lua_State *L, int index)
{
    static const char *const names[] = {"absolute", "relative", "scaled", "scale", NULL};
    struct tl_bound bound = {0};
    if (lua_isnoneornil(L, index))
        return bound;
    tlua_keys_check(L, index, "bound", names);
    bound.absolute = tlua_field_number(L, index, "absolute", 0);
    bound.relative = tlua_field_number(L, index, "relative", 0);
    bound.scaled = tlua_field_number(L, index, "scaled", 0);
    if (lua_getfield(L, index, "scale") != LUA_TNIL) /* stays on the stack, and so alive */
        bound.scale = tlua_tensor_check(L, -1);
    return bound;
}

static int compare(lua_State *L)
{
    const struct tl_tensor *value = tlua_tensor_check(L, 1);
    const struct tl_tensor *reference = tlua_tensor_check(L, 2);
    struct tl_bound bound = bound_check(L, 3);
    struct tl_comparison result;
    enum tl_status status = tl_compare(&result, value, reference, &bound);
    if (status != TL_OK)
        return tlua_raise(L, status);
    push_comparison(L, &result, value->rank);
    return 1;
}

/* Everything is allocated as userdata, so that an error on the way leaks nothing. */
static int compare_groups(lua_State *L)
{
    const struct tl_tensor *value = tlua_tensor_check(L, 1);
    const struct tl_tensor *reference = tlua_tensor_check(L, 2);
    const struct tl_tensor *offsets = tlua_tensor_check(L, 3);
    struct tl_bound bound = bound_check(L, 4);
    luaL_argcheck(L, offsets->dtype == TL_I32 && offsets->rank == 1 && offsets->shape[0] > 0, 3,
                  "group_offsets must be i32 [num_groups + 1]");
    int64_t num_groups = offsets->shape[0] - 1;
    struct tl_tensor *on_host = tlua_tensor_new(L);
    enum tl_status status = tl_tensor_on_host(on_host, offsets);
    if (status != TL_OK)
        return tlua_raise(L, status);
    struct tl_comparison *results =
        lua_newuserdatauv(L, (size_t)(num_groups + 1) * sizeof *results, 0);
    status = tl_compare_groups(results, value, reference, &bound, on_host->data, num_groups);
    if (status != TL_OK)
        return tlua_raise(L, status);
    lua_createtable(L, (int)num_groups, 0);
    for (int64_t g = 0; g < num_groups; g++) {
        push_comparison(L, results + g, value->rank);
        lua_rawseti(L, -2, g + 1);
    }
    return 1;
}

static const luaL_Reg functions[] = {
    {"stats", stats},
    {"compare", compare},
    {"compare_groups", compare_groups},
    {NULL, NULL},
};

void tlua_stats_open(lua_State *L)
{
    luaL_setfuncs(L, functions, 0);
}
