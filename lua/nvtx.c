/* NVTX ranges (core/nvtx.h); lua/tilelab/nvtx.lua adds the function form.
 *
 *   local range <close> = lab.nvtx(name)       range:close() ends it early; again is fine
 */
#include "binding.h"

#include "core/nvtx.h"

#define RANGE_TYPE "tilelab.nvtx"

struct range_box {
    int depth; /* 0 once closed */
};

static int range_open(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    struct range_box *box = lua_newuserdatauv(L, sizeof *box, 0);
    box->depth = 0;
    luaL_setmetatable(L, RANGE_TYPE);
    box->depth = tl_nvtx_push(name);
    return 1;
}

static int range_close(lua_State *L)
{
    struct range_box *box = luaL_checkudata(L, 1, RANGE_TYPE);
    tl_nvtx_close(box->depth);
    box->depth = 0;
    return 0;
}

static int depth(lua_State *L)
{
    lua_pushinteger(L, tl_nvtx_depth());
    return 1;
}

static const luaL_Reg functions[] = {
    {"nvtx", range_open},
    {"nvtx_depth", depth},
    {NULL, NULL},
};

static const luaL_Reg range_methods[] = {
    {"close", range_close},
    {NULL, NULL},
};

/* No __gc: a range that nobody closed would end at a random moment, and with it those around it. */
static const luaL_Reg range_meta[] = {
    {"__close", range_close},
    {NULL, NULL},
};

void tlua_nvtx_open(lua_State *L)
{
    tlua_metatable(L, RANGE_TYPE, range_meta, range_methods, NULL);
    luaL_setfuncs(L, functions, 0);
}
