/* Error values, nearest-name messages and tables of named arguments; see binding.h.
 *
 * An error value is a table {kind, message, code} with its own metatable, so that a script's end
 * (lab.main, the host) can tell a usage error or an interruption from a defect, whatever module
 * raised it. tostring gives the message.
 */
#include "binding.h"

#include <math.h>
#include <string.h>

#include "core/names.h"

#define ERROR_TYPE "tilelab.error"
enum { MAX_NAMES = 64 };

static int error_tostring(lua_State *L)
{
    lua_getfield(L, 1, "message");
    return 1;
}

static const luaL_Reg error_meta[] = {
    {"__tostring", error_tostring},
    {NULL, NULL},
};

/* Made when first needed: Ctrl-C raises in scripts, too, that never load the module. */
static void push_metatable(lua_State *L)
{
    if (luaL_newmetatable(L, ERROR_TYPE))
        luaL_setfuncs(L, error_meta, 0);
}

void tlua_error_push(lua_State *L, const char *kind, const char *message, const char *code)
{
    lua_createtable(L, 0, 3);
    tlua_set_string(L, "kind", kind);
    tlua_set_string(L, "message", message);
    tlua_set_string(L, "code", code);
    push_metatable(L);
    lua_setmetatable(L, -2);
}

const char *tlua_error_kind(lua_State *L, int index)
{
    if (!lua_istable(L, index) || !lua_getmetatable(L, index))
        return NULL;
    luaL_getmetatable(L, ERROR_TYPE);
    bool ours = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    if (!ours)
        return NULL;
    lua_getfield(L, index, "kind");
    const char *kind = lua_tostring(L, -1);
    lua_pop(L, 1);
    return kind;
}

int tlua_refused(lua_State *L, enum tl_status status)
{
    if (status == TL_ERR_ARGUMENT)
        return luaL_error(L, "%s", tl_error_message());
    luaL_pushfail(L);
    lua_pushstring(L, tl_error_message());
    lua_pushstring(L, tl_status_name(status));
    return 3;
}

int tlua_raise(lua_State *L, enum tl_status status)
{
    if (status == TL_ERR_ARGUMENT || status == TL_ERR_ILLEGAL)
        return luaL_error(L, "%s", tl_error_message());
    tlua_error_push(L, "refused", tl_error_message(), tl_status_name(status));
    return lua_error(L);
}

int tlua_unknown(lua_State *L, const char *what, const char *name, const char *const *names,
                 int count)
{
    const char *nearest = tl_name_nearest(name, names, count);
    if (nearest)
        return luaL_error(L, "unknown %s '%s'; did you mean '%s'?", what, name, nearest);
    luaL_Buffer list;
    luaL_buffinit(L, &list);
    for (int i = 0; i < count; i++) {
        if (i)
            luaL_addstring(&list, ", ");
        luaL_addstring(&list, names[i]);
    }
    luaL_pushresult(&list);
    return luaL_error(L, "unknown %s '%s'; there are: %s", what, name, lua_tostring(L, -1));
}

void tlua_keys_check(lua_State *L, int index, const char *what, const char *const *names)
{
    luaL_checktype(L, index, LUA_TTABLE);
    index = lua_absindex(L, index);
    int count = 0;
    while (names[count])
        count++;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            luaL_error(L, "a %s has named fields only, not [%s]", what,
                       luaL_tolstring(L, -2, NULL));
        const char *key = lua_tostring(L, -2);
        bool known = false;
        for (int i = 0; i < count && !known; i++)
            known = strcmp(names[i], key) == 0;
        if (!known)
            tlua_unknown(L, lua_pushfstring(L, "%s field", what), key, names, count);
    }
}

double tlua_field_number(lua_State *L, int index, const char *name, double fallback)
{
    double value = fallback;
    int type = lua_getfield(L, index, name);
    if (type == LUA_TNUMBER)
        value = lua_tonumber(L, -1);
    else if (type != LUA_TNIL)
        luaL_error(L, "%s must be a number, not a %s", name, lua_typename(L, type));
    lua_pop(L, 1);
    return value;
}

lua_Integer tlua_field_integer(lua_State *L, int index, const char *name, lua_Integer fallback)
{
    lua_Integer value = fallback;
    if (lua_getfield(L, index, name) != LUA_TNIL) {
        int is_integer;
        value = lua_tointegerx(L, -1, &is_integer);
        if (!is_integer)
            luaL_error(L, "%s must be an integer, not '%s'", name, luaL_tolstring(L, -1, NULL));
    }
    lua_pop(L, 1);
    return value;
}

void tlua_set_string(lua_State *L, const char *name, const char *value)
{
    lua_pushstring(L, value);
    lua_setfield(L, -2, name);
}

void tlua_set_number(lua_State *L, const char *name, double value)
{
    lua_pushnumber(L, value);
    lua_setfield(L, -2, name);
}

void tlua_set_integer(lua_State *L, const char *name, int64_t value)
{
    lua_pushinteger(L, value);
    lua_setfield(L, -2, name);
}

void tlua_set_boolean(lua_State *L, const char *name, bool value)
{
    lua_pushboolean(L, value);
    lua_setfield(L, -2, name);
}

void tlua_metatable(lua_State *L, const char *name, const luaL_Reg *meta, const luaL_Reg *methods,
                    lua_CFunction fields)
{
    luaL_newmetatable(L, name);
    luaL_setfuncs(L, meta, 0);
    lua_newtable(L);
    luaL_setfuncs(L, methods, 0);
    if (fields)
        lua_pushcclosure(L, fields, 1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

void tlua_metatable_extend(lua_State *L, const char *name, const luaL_Reg *methods)
{
    luaL_getmetatable(L, name);
    if (lua_getfield(L, -1, "__index") == LUA_TFUNCTION) {
        lua_getupvalue(L, -1, 1); /* the table of methods */
        lua_remove(L, -2);
    }
    luaL_setfuncs(L, methods, 0);
    lua_pop(L, 2);
}

int tlua_method(lua_State *L, const char *what, const char *const *names)
{
    lua_settop(L, 2);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
        return 1;
    const char *known[MAX_NAMES];
    int count = 0;
    for (; count < MAX_NAMES && names[count]; count++)
        known[count] = names[count];
    for (lua_pushnil(L); lua_next(L, lua_upvalueindex(1)); lua_pop(L, 1))
        if (count < MAX_NAMES)
            known[count++] = lua_tostring(L, -2); /* kept by the table of methods */
    return tlua_unknown(L, lua_pushfstring(L, "%s field", what), luaL_tolstring(L, 2, NULL), known,
                        count);
}

/* core.error_new(kind, message[, code]) -> error value; raise it with error(value, 0) */
static int error_new(lua_State *L)
{
    tlua_error_push(L, luaL_checkstring(L, 1), luaL_checkstring(L, 2), luaL_optstring(L, 3, NULL));
    return 1;
}

/* core.error_kind(value) -> "usage", "help", "refused", "interrupted"; nil for any other value */
static int error_kind(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_settop(L, 1);
    lua_pushstring(L, tlua_error_kind(L, 1));
    return 1;
}

static const luaL_Reg functions[] = {
    {"error_new", error_new},
    {"error_kind", error_kind},
    {NULL, NULL},
};

void tlua_error_open(lua_State *L)
{
    push_metatable(L);
    lua_pop(L, 1);
    luaL_setfuncs(L, functions, 0);
}
