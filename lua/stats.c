/* Statistics and comparison.
 *
 *   lab.stats(list) -> {n, min, q1, median, q3, max, mean, relative_spread, median_lo, median_hi,
 *       coverage}; raises for an empty list or a value that is not finite (core/stats.h)
 *   lab.compare(value, reference[, {absolute = 0, relative = 0, scaled = 0, scale = tensor}])
 *       -> {pass, count, nonfinite, mismatched_bits, violations, relative_frobenius, worst_ratio,
 *       worst_index, worst_coord, worst_value, worst_reference}; positions are 1-based and absent
 *       where there is nothing to compare (core/compare.h)
 */
#include "binding.h"

#include <string.h>

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

static int compare(lua_State *L)
{
    static const char *const names[] = {"absolute", "relative", "scaled", "scale", NULL};
    const struct tl_tensor *value = tlua_tensor_check(L, 1);
    const struct tl_tensor *reference = tlua_tensor_check(L, 2);
    struct tl_bound bound;
    struct tl_comparison result;
    memset(&bound, 0, sizeof bound);
    lua_settop(L, 3);
    if (!lua_isnil(L, 3)) {
        tlua_keys_check(L, 3, "bound", names);
        bound.absolute = tlua_field_number(L, 3, "absolute", 0);
        bound.relative = tlua_field_number(L, 3, "relative", 0);
        bound.scaled = tlua_field_number(L, 3, "scaled", 0);
        if (lua_getfield(L, 3, "scale") != LUA_TNIL)
            bound.scale = tlua_tensor_check(L, -1);
    }
    enum tl_status status = tl_compare(&result, value, reference, &bound);
    if (status != TL_OK)
        return tlua_raise(L, status);
    push_comparison(L, &result, value->rank);
    return 1;
}

static const luaL_Reg functions[] = {
    {"stats", stats},
    {"compare", compare},
    {NULL, NULL},
};

void tlua_stats_open(lua_State *L)
{
    luaL_setfuncs(L, functions, 0);
}
