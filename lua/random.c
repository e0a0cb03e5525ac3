/* Random numbers for scripts: one stream of the counter-based generator (core/random.h), read from
 * its first index on. The same (seed, sequence) gives the same numbers everywhere.
 *
 *   lab.random(seed[, sequence = 0]) -> generator
 *   r:uniform() in [0, 1)     r:normal()     r:below(n) an integer in [0, n), n up to 2^32 - 1
 *   r:shuffle(list) -> list, in place, each order equally likely
 */
#include "binding.h"

#include "core/random.h"

#define RANDOM_TYPE "tilelab.random"

struct generator {
    uint64_t seed, sequence, index;
};

static struct tl_random_block next_block(struct generator *generator)
{
    return tl_random_at(generator->seed, generator->sequence, generator->index++);
}

static struct generator *check(lua_State *L)
{
    return luaL_checkudata(L, 1, RANDOM_TYPE);
}

static int random_new(lua_State *L)
{
    lua_Integer seed = luaL_checkinteger(L, 1), sequence = luaL_optinteger(L, 2, 0);
    struct generator *generator = lua_newuserdatauv(L, sizeof *generator, 0);
    generator->seed = (uint64_t)seed;
    generator->sequence = (uint64_t)sequence;
    generator->index = 0;
    luaL_setmetatable(L, RANDOM_TYPE);
    return 1;
}

static int random_uniform(lua_State *L)
{
    lua_pushnumber(L, (lua_Number)tl_random_uniform(next_block(check(L))));
    return 1;
}

static int random_normal(lua_State *L)
{
    lua_pushnumber(L, (lua_Number)tl_random_normal(next_block(check(L))));
    return 1;
}

static int random_below(lua_State *L)
{
    struct generator *generator = check(L);
    lua_Integer bound = luaL_checkinteger(L, 2);
    luaL_argcheck(L, bound >= 1 && bound <= UINT32_MAX, 2, "a bound is 1 to 2^32 - 1");
    lua_pushinteger(L, tl_random_below(next_block(generator), (uint32_t)bound));
    return 1;
}

static int random_shuffle(lua_State *L)
{
    struct generator *generator = check(L);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    lua_Integer n = luaL_len(L, 2);
    luaL_argcheck(L, n <= UINT32_MAX, 2, "too long to shuffle");
    for (lua_Integer i = n; i > 1; i--) {
        lua_Integer j = (lua_Integer)tl_random_below(next_block(generator), (uint32_t)i) + 1;
        lua_geti(L, 2, i);
        lua_geti(L, 2, j);
        lua_seti(L, 2, i);
        lua_seti(L, 2, j);
    }
    return 1;
}

static const luaL_Reg functions[] = {
    {"random", random_new},
    {NULL, NULL},
};

static const luaL_Reg methods[] = {
    {"uniform", random_uniform},
    {"normal", random_normal},
    {"below", random_below},
    {"shuffle", random_shuffle},
    {NULL, NULL},
};

static const luaL_Reg meta[] = {
    {NULL, NULL},
};

void tlua_random_open(lua_State *L)
{
    tlua_metatable(L, RANDOM_TYPE, meta, methods, NULL);
    luaL_setfuncs(L, functions, 0);
}
