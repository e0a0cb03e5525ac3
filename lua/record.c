/* Writer of result files (core/record.h); the reader is lua/tilelab/record.lua.
 *
 *   core.record_create(path, provenance, columns) -> record | nil, message, code
 *   core.record_append(path, columns)             -> record | nil, message, code
 *   record:row{column = value, ...} -> record     every column once, by name; flushed
 *   record:close() -> true | nil, message, code   also by <close> and the collector
 *
 * A cell is text, a boolean or a number. Floats are written with as many digits as it takes to read
 * the same bits back. "-" stands for what does not apply; nothing stands for nil.
 */
#include "binding.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/record.h"

#define RECORD_TYPE "tilelab.record"
enum { MAX_COLUMNS = 128 };

struct record_box {
    struct tl_record *record; /* NULL once closed */
    int num_columns;
};

/* --- accessors --- */

static struct record_box *check(lua_State *L)
{
    struct record_box *box = luaL_checkudata(L, 1, RECORD_TYPE);
    luaL_argcheck(L, box->record, 1, "this record is closed");
    return box;
}

/* Pointers to the texts of the list at `index`, which must outlive them. The list is checked to
 * hold 1 to MAX_COLUMNS different names. */
static int read_columns(lua_State *L, int index, const char *columns[MAX_COLUMNS])
{
    luaL_checktype(L, index, LUA_TTABLE);
    lua_Integer count = (lua_Integer)lua_rawlen(L, index); /* a metamethod's names would not last */
    luaL_argcheck(L, count >= 1 && count <= MAX_COLUMNS, index, "a record has 1 to 128 columns");
    for (int i = 0; i < (int)count; i++) {
        if (lua_rawgeti(L, index, i + 1) != LUA_TSTRING)
            luaL_error(L, "column %d is a %s, not a name", i + 1, luaL_typename(L, -1));
        columns[i] = lua_tostring(L, -1); /* the list keeps it */
        for (int j = 0; j < i; j++)
            if (strcmp(columns[i], columns[j]) == 0)
                luaL_error(L, "column '%s' is there twice", columns[i]);
        lua_pop(L, 1);
    }
    return (int)count;
}

/* Pushes a closed record that keeps a copy of its list of columns. */
static struct record_box *push_record(lua_State *L, const char *const *columns, int count)
{
    struct record_box *box = lua_newuserdatauv(L, sizeof *box, 1);
    box->record = NULL;
    box->num_columns = count;
    luaL_setmetatable(L, RECORD_TYPE);
    tlua_strings_push(L, columns, count);
    lua_setiuservalue(L, -2, 1);
    return box;
}

/* --- functions --- */

static int record_create(lua_State *L)
{
    const char *columns[MAX_COLUMNS];
    const char *path = luaL_checkstring(L, 1), *provenance = luaL_checkstring(L, 2);
    int count = read_columns(L, 3, columns);
    struct record_box *box = push_record(L, columns, count);
    enum tl_status status = tl_record_create(&box->record, path, provenance, columns, count);
    return status == TL_OK ? 1 : tlua_refused(L, status);
}

static int record_append(lua_State *L)
{
    const char *columns[MAX_COLUMNS];
    const char *path = luaL_checkstring(L, 1);
    int count = read_columns(L, 2, columns);
    struct record_box *box = push_record(L, columns, count);
    enum tl_status status = tl_record_append(&box->record, path, columns, count);
    return status == TL_OK ? 1 : tlua_refused(L, status);
}

static void push_number(lua_State *L, double value)
{
    char text[40];
    if (isnan(value)) {
        lua_pushliteral(L, "nan");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    lua_pushstring(L, text);
}

/* Replaces the value on top of the stack by its text. */
static const char *to_cell(lua_State *L, const char *column)
{
    switch (lua_type(L, -1)) {
    case LUA_TNIL:
        luaL_error(L, "this row lacks column '%s'; write \"-\" where it does not apply", column);
        break;
    case LUA_TSTRING:
        if (strlen(lua_tostring(L, -1)) != lua_rawlen(L, -1))
            luaL_error(L, "column '%s' holds a text with a zero byte", column);
        break;
    case LUA_TNUMBER:
        if (lua_isinteger(L, -1))
            luaL_tolstring(L, -1, NULL);
        else
            push_number(L, lua_tonumber(L, -1));
        lua_replace(L, -2);
        break;
    case LUA_TBOOLEAN:
        luaL_tolstring(L, -1, NULL);
        lua_replace(L, -2);
        break;
    default:
        luaL_error(L, "column '%s' holds a %s; a cell is text or a number", column,
                   luaL_typename(L, -1));
    }
    return lua_tostring(L, -1);
}

static int record_row(lua_State *L)
{
    const char *columns[MAX_COLUMNS + 1], *cells[MAX_COLUMNS];
    struct record_box *box = check(L);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    lua_getiuservalue(L, 1, 1);
    read_columns(L, 3, columns);
    columns[box->num_columns] = NULL;
    tlua_keys_check(L, 2, "row", columns);
    luaL_checkstack(L, box->num_columns + 4, "a row's cells");
    for (int i = 0; i < box->num_columns; i++) {
        lua_getfield(L, 2, columns[i]);
        cells[i] = to_cell(L, columns[i]); /* stays on the stack until the row is written */
    }
    box = check(L); /* a metamethod of the row may have closed it */
    enum tl_status status = tl_record_row(box->record, cells, box->num_columns);
    if (status != TL_OK)
        return tlua_raise(L, status);
    lua_settop(L, 1);
    return 1;
}

static int record_close(lua_State *L)
{
    struct record_box *box = luaL_checkudata(L, 1, RECORD_TYPE);
    struct tl_record *record = box->record;
    box->record = NULL;
    enum tl_status status = tl_record_close(record);
    if (status != TL_OK)
        return tlua_refused(L, status);
    lua_pushboolean(L, 1);
    return 1;
}

/* --- tables --- */

static const luaL_Reg functions[] = {
    {"record_create", record_create},
    {"record_append", record_append},
    {NULL, NULL},
};

static const luaL_Reg methods[] = {
    {"row", record_row},
    {"close", record_close},
    {NULL, NULL},
};

static const luaL_Reg meta[] = {
    {"__gc", record_close},
    {"__close", record_close},
    {NULL, NULL},
};

void tlua_record_open(lua_State *L)
{
    tlua_metatable(L, RECORD_TYPE, meta, methods, NULL);
    luaL_setfuncs(L, functions, 0);
}
